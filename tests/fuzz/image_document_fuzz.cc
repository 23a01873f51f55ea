// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and configurations: whatever is taken has digests that may become file names,
// and is either an index or a manifest, whichever way it came.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "image/source/manifest.h"
#include "image/source/reference.h"

namespace {

constexpr std::array<std::string_view, 6> kTypes = {
    "",
    "application/json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json; charset=utf-8",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json"};

void Check(const image::Descriptor& descriptor) {
  ENSURE(image::IsDigest(descriptor.digest));
  ENSURE(descriptor.size >= 0);
}

void CheckDocument(std::string_view text, std::string_view type) {
  Result<std::variant<image::Index, image::Manifest>> parsed = image::ParseManifest(text, type);
  if (!parsed.ok()) return;
  // What came without a type is not something else with one.
  Result<std::variant<image::Index, image::Manifest>> untyped = image::ParseManifest(text, "");
  ENSURE(untyped.ok() && untyped.value().index() == parsed.value().index());
  if (const image::Index* index = std::get_if<image::Index>(&parsed.value())) {
    for (const image::Descriptor& entry : index->manifests) Check(entry);
    Result<image::Descriptor> chosen = image::ChoosePlatform(*index, {"linux", "arm", "v7"});
    ENSURE(!chosen.ok() || chosen.value().platform.architecture == "arm");
    return;
  }
  const image::Manifest& manifest = std::get<image::Manifest>(parsed.value());
  Check(manifest.config);
  for (const image::Descriptor& layer : manifest.layers) Check(layer);
  ENSURE(manifest.layers.size() <= image::kLayersMax);
  ENSURE(manifest.subject.empty() || image::IsDigest(manifest.subject));
  ENSURE(!image::CheckRunnable(manifest).ok() || !manifest.layers.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckDocument(text, kTypes[data[0] % kTypes.size()]);
  Result<image::ImageConfig> config = image::ParseImageConfig(text);
  if (!config.ok()) return 0;
  ENSURE(std::all_of(config.value().diff_ids.begin(), config.value().diff_ids.end(),
                     [](const std::string& id) { return image::IsDigest(id); }));
  for (const std::string& variable : config.value().env) {
    ENSURE(variable.find('=') != 0 && variable.find('\0') == std::string::npos);
  }
  return 0;
}
