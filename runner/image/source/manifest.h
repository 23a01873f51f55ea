// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and configurations of images, parsed strictly: a document that could be read
// in two ways is refused (CVE-2021-41190). OCI image-spec 1.1, Docker's schema 2.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace image {

inline constexpr size_t kManifestBytesMax = 4 << 20;
inline constexpr size_t kConfigBytesMax = 4 << 20;
// The kernel's overlayfs stacks 500 layers, of which one is the empty one below an image's.
inline constexpr size_t kLayersMax = 499;

struct Platform {
  std::string os = "linux";
  std::string architecture;  // Go's names: "amd64", "arm64".
  std::string variant;       // "v8"; may be empty.
};

// Returns the platform of the machine that this runs on.
Platform HostPlatform();

struct Descriptor {
  std::string media_type;
  std::string digest;  // IsDigest.
  int64_t size = 0;    // Exact.
  std::string artifact_type;
  Platform platform;  // In indexes; os is empty where none is said.
  std::map<std::string, std::string> annotations;

  // Returns the annotation of that name, or "".
  std::string Annotation(const std::string& name) const;
};

struct Index {
  std::vector<Descriptor> manifests;
};

struct Manifest {
  std::string artifact_type;  // Its own, or its config's media type.
  Descriptor config;
  std::vector<Descriptor> layers;
  std::string subject;  // The digest this is about; or empty.
};

// Parses a manifest. `media_type` is the Content-Type it came with, or its descriptor's; a type
// that is not a manifest's ("application/json") says nothing. Fails with kInvalid for anything
// else, and for Docker's schema 1.
Result<std::variant<Index, Manifest>> ParseManifest(std::string_view bytes,
                                                    std::string_view media_type);

// Checks that `manifest` is an image's: a configuration and layers of the known types. Fails with
// kInvalid, and a hint, for what registries also hold: Helm charts, signatures, other artifacts.
Status CheckRunnable(const Manifest& manifest);

// The image's settings for running it.
struct ImageConfig {
  Platform platform;
  std::vector<std::string> env;  // "NAME=value"
  std::string user;              // The user as written: "1000", "node", "node:node", "".
  std::string working_dir;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> diff_ids;  // One for each layer, lowest first.
};

Result<ImageConfig> ParseImageConfig(std::string_view bytes);

// Returns the entry of `index` for `platform`: os, architecture, and the variant where both say
// one. The first of the best. Fails with kNotFound, listing what there is.
Result<Descriptor> ChoosePlatform(const Index& index, const Platform& platform);

}  // namespace image
