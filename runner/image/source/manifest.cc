// SPDX-License-Identifier: Apache-2.0
#include "image/source/manifest.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <span>

#include "codec/call/json_body.h"
#include "codec/data/json.h"
#include "image/source/reference.h"

namespace image {
namespace {

using codec::Json;

constexpr size_t kIndexEntriesMax = 1024;
constexpr size_t kAnnotationsMax = 256;
constexpr size_t kStringsMax = 4096;  // The texts of one list in a configuration.
constexpr int64_t kBlobBytesMax = int64_t{1} << 40;

constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kDockerList =
    "application/vnd.docker.distribution.manifest.list.v2+json";
constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";

Error BadManifest(const std::string& what, std::string hint = {}) {
  return Error{Code::kInvalid, what, std::move(hint)};
}

bool IsIndexType(std::string_view type) { return type == kOciIndex || type == kDockerList; }
bool IsManifestType(std::string_view type) {
  return type == kOciManifest || type == kDockerManifest;
}

// "application/json; charset=utf-8" -> "application/json".
std::string_view WithoutParameters(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  return type;
}

// A member of that name must be a string when it is there. Null is as good as absent: Go writes it.
Result<std::string> StringOf(const Json& json, std::string_view name) {
  const Json* value = json.Find(name);
  if (value == nullptr || value->is_null()) return std::string();
  if (value->string() == nullptr)
    return BadManifest("\"" + std::string(name) + "\" is not a string");
  if (value->string()->find('\0') != std::string::npos) {
    return BadManifest("\"" + std::string(name) + "\" has a zero byte");
  }
  return *value->string();
}

// Refuses names that tools written in Go would read as another member: they ignore case.
Status CheckNames(const Json& json, std::span<const std::string_view> names, const char* what) {
  if (json.object() == nullptr) return BadManifest(std::string(what) + " is not an object");
  return codec::CheckMemberNames(json, names).Context(what);
}

Result<Platform> ParsePlatform(const Json& json) {
  constexpr std::array<std::string_view, 3> kNames = {"os", "architecture", "variant"};
  TRY(CheckNames(json, kNames, "a platform"));
  Platform platform;
  platform.os = TRY(StringOf(json, "os"));
  platform.architecture = TRY(StringOf(json, "architecture"));
  platform.variant = TRY(StringOf(json, "variant"));
  return platform;
}

Result<std::map<std::string, std::string>> ParseAnnotations(const Json* json) {
  std::map<std::string, std::string> annotations;
  if (json == nullptr || json->is_null()) return annotations;
  if (json->object() == nullptr || json->object()->size() > kAnnotationsMax) {
    return BadManifest("the annotations are not an object, or too many");
  }
  for (const auto& [name, value] : *json->object()) {
    if (value.string() == nullptr) return BadManifest("an annotation is not a string");
    annotations[name] = *value.string();
  }
  return annotations;
}

Result<Descriptor> ParseDescriptor(const Json& json, const char* what) {
  constexpr std::array<std::string_view, 6> kNames = {"mediaType",    "digest",   "size",
                                                      "artifactType", "platform", "annotations"};
  TRY(CheckNames(json, kNames, what));
  Descriptor descriptor;
  descriptor.media_type = TRY(StringOf(json, "mediaType"));
  descriptor.artifact_type = TRY(StringOf(json, "artifactType"));
  descriptor.digest = TRY(StringOf(json, "digest"));
  if (!IsDigest(descriptor.digest)) {
    return BadManifest(std::string(what) +
                       ": its digest is not sha256: and 64 lower-case hexadecimal digits");
  }
  const Json* size = json.Find("size");
  if (size == nullptr || !size->integer() || *size->integer() < 0 ||
      *size->integer() > kBlobBytesMax) {
    return BadManifest(std::string(what) + ": its size is not a number of bytes");
  }
  descriptor.size = *size->integer();
  descriptor.platform.os.clear();
  const Json* platform = json.Find("platform");
  if (platform != nullptr && !platform->is_null()) {
    descriptor.platform = TRY(ParsePlatform(*platform));
  }
  descriptor.annotations = TRY(ParseAnnotations(json.Find("annotations")));
  return descriptor;
}

Result<std::vector<Descriptor>> ParseDescriptors(const Json& json, size_t count_max,
                                                 const char* what) {
  if (json.array() == nullptr) return BadManifest(std::string(what) + "s are not a list");
  if (json.array()->size() > count_max) {
    return BadManifest("more than " + std::to_string(count_max) + " of: " + what);
  }
  std::vector<Descriptor> descriptors;
  for (const Json& entry : *json.array()) {
    descriptors.push_back(TRY(ParseDescriptor(entry, what)));
  }
  return descriptors;
}

Result<Index> ParseIndex(const Json& json) {
  return Index{TRY(ParseDescriptors(*json.Find("manifests"), kIndexEntriesMax, "a manifest"))};
}

Result<Manifest> ParseOneManifest(const Json& json) {
  const Json* config = json.Find("config");
  const Json* layers = json.Find("layers");
  if (config == nullptr || layers == nullptr) return BadManifest("neither an index nor a manifest");
  Manifest manifest;
  manifest.config = TRY(ParseDescriptor(*config, "the configuration"));
  manifest.layers = TRY(ParseDescriptors(*layers, kLayersMax, "a layer"));
  manifest.artifact_type = TRY(StringOf(json, "artifactType"));
  if (manifest.artifact_type.empty()) manifest.artifact_type = manifest.config.media_type;
  const Json* subject = json.Find("subject");
  if (subject != nullptr && !subject->is_null()) {
    manifest.subject = TRY(ParseDescriptor(*subject, "the subject")).digest;
  }
  return manifest;
}

// That the document is what it came as, and what it says itself.
Status CheckTypes(const Json& json, std::string_view content_type, bool index) {
  const std::string own = TRY(StringOf(json, "mediaType"));
  for (std::string_view type : {content_type, std::string_view(own)}) {
    if ((IsIndexType(type) && !index) || (IsManifestType(type) && index)) {
      return BadManifest("it was served as " + std::string(type) + " but is " +
                         (index ? "an index" : "a manifest"));
    }
  }
  const bool known = IsIndexType(content_type) || IsManifestType(content_type);
  if (known && !own.empty() && own != content_type) {
    return BadManifest("it was served as " + std::string(content_type) + " but says that it is " +
                       own);
  }
  if (!own.empty() && !IsIndexType(own) && !IsManifestType(own)) {
    return BadManifest("not a manifest: it says that it is " + own);
  }
  return Ok();
}

// A list of strings, or nothing.
Result<std::vector<std::string>> StringsOf(const Json& json, std::string_view name) {
  std::vector<std::string> strings;
  const Json* list = json.Find(name);
  if (list == nullptr || list->is_null()) return strings;
  if (list->array() == nullptr || list->array()->size() > kStringsMax) {
    return BadManifest("\"" + std::string(name) + "\" is not a list, or too long");
  }
  for (const Json& entry : *list->array()) {
    if (entry.string() == nullptr || entry.string()->find('\0') != std::string::npos) {
      return BadManifest("\"" + std::string(name) + "\" has an entry that is not a string");
    }
    strings.push_back(*entry.string());
  }
  return strings;
}

std::string Shown(const Platform& platform) {
  std::string text = (platform.os.empty() ? "?" : platform.os) + "/" +
                     (platform.architecture.empty() ? "?" : platform.architecture);
  return platform.variant.empty() ? text : text + "/" + platform.variant;
}

// Returns how well `offered` serves `wanted`: 0 not at all, 2 exactly.
int Fit(const Platform& offered, const Platform& wanted) {
  if (offered.os != wanted.os || offered.architecture != wanted.architecture) return 0;
  if (offered.variant == wanted.variant) return 2;
  return offered.variant.empty() || wanted.variant.empty() ? 1 : 0;
}

}  // namespace

std::string Descriptor::Annotation(const std::string& name) const {
  auto found = annotations.find(name);
  return found == annotations.end() ? "" : found->second;
}

Platform HostPlatform() {
  constexpr std::array<std::array<const char*, 3>, 6> kMachines = {{
      {"x86_64", "amd64", ""},
      {"aarch64", "arm64", "v8"},
      {"armv7l", "arm", "v7"},
      {"riscv64", "riscv64", ""},
      {"ppc64le", "ppc64le", ""},
      {"s390x", "s390x", ""},
  }};
  utsname host{};
  ENSURE(::uname(&host) == 0);
  for (const auto& [machine, architecture, variant] : kMachines) {
    if (std::string_view(machine) == host.machine) return {"linux", architecture, variant};
  }
  return {"linux", host.machine, ""};
}

Result<std::variant<Index, Manifest>> ParseManifest(std::string_view bytes,
                                                    std::string_view media_type) {
  constexpr std::array<std::string_view, 9> kNames = {"schemaVersion", "mediaType", "manifests",
                                                      "config",        "layers",    "artifactType",
                                                      "subject",       "fsLayers",  "signatures"};
  const std::string_view type = WithoutParameters(media_type);
  const Json json = TRY(
      codec::ParseJson(bytes, {.bytes_max = kManifestBytesMax}).Context("reading the manifest"));
  TRY(CheckNames(json, kNames, "the manifest"));
  if (json.IntegerAt("schemaVersion") == 1 ||
      type.starts_with("application/vnd.docker.distribution.manifest.v1")) {
    return BadManifest("a Docker schema 1 manifest, which has no digest for its configuration",
                       "skopeo copy --format oci docker://OLD docker://NEW");
  }
  if (json.IntegerAt("schemaVersion") != 2)
    return BadManifest("not a manifest: schemaVersion is not 2");
  const bool index = json.Find("manifests") != nullptr;
  for (const char* other : {"config", "layers", "fsLayers"}) {
    if (index && json.Find(other) != nullptr) {
      return BadManifest(std::string("ambiguous: it has both \"manifests\" and \"") + other + "\"");
    }
  }
  TRY(CheckTypes(json, type, index));
  if (index) return std::variant<Index, Manifest>(TRY(ParseIndex(json)));
  return std::variant<Index, Manifest>(TRY(ParseOneManifest(json)));
}

Status CheckRunnable(const Manifest& manifest) {
  constexpr std::array<std::string_view, 2> kConfigTypes = {
      "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"};
  constexpr std::array<std::string_view, 4> kLayerTypes = {
      "application/vnd.oci.image.layer.v1.tar",
      "application/vnd.oci.image.layer.nondistributable.v1.tar",
      "application/vnd.docker.image.rootfs.diff.tar",
      "application/vnd.docker.image.rootfs.foreign.diff.tar"};
  const std::string& config = manifest.config.media_type;
  const auto is_config = [&](std::string_view type) { return type == config; };
  if (std::none_of(kConfigTypes.begin(), kConfigTypes.end(), is_config)) {
    const bool helm = config.starts_with("application/vnd.cncf.helm.");
    return BadManifest(
        "not a runnable image: its configuration is " + (helm             ? "a Helm chart's"
                                                         : config.empty() ? "without a type"
                                                                          : config),
        helm ? "helm pull, for a chart" : "");
  }
  if (manifest.layers.empty()) return BadManifest("the image has no layers");
  for (const Descriptor& layer : manifest.layers) {
    std::string_view type = layer.media_type;
    for (std::string_view suffix : {"+gzip", "+zstd", ".gzip", ".zstd"}) {
      if (type.ends_with(suffix)) type.remove_suffix(suffix.size());
    }
    if (std::find(kLayerTypes.begin(), kLayerTypes.end(), type) == kLayerTypes.end()) {
      return BadManifest("a layer is not a file system: " + layer.media_type);
    }
  }
  return Ok();
}

Result<ImageConfig> ParseImageConfig(std::string_view bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"os", "architecture", "variant", "config",
                                                      "rootfs"};
  constexpr std::array<std::string_view, 5> kConfigNames = {"Env", "User", "WorkingDir",
                                                            "Entrypoint", "Cmd"};
  const Json json = TRY(codec::ParseJson(bytes, {.bytes_max = kConfigBytesMax})
                            .Context("reading the image's configuration"));
  TRY(CheckNames(json, kNames, "the image's configuration"));
  ImageConfig config;
  config.platform = TRY(ParsePlatform(json));
  const Json* rootfs = json.Find("rootfs");
  if (rootfs == nullptr || rootfs->StringAt("type") != "layers") {
    return BadManifest("the image's configuration has no \"rootfs\" of type \"layers\"");
  }
  config.diff_ids = TRY(StringsOf(*rootfs, "diff_ids"));
  if (!std::all_of(config.diff_ids.begin(), config.diff_ids.end(),
                   [](const std::string& id) { return IsDigest(id); })) {
    return BadManifest("a diff id is not sha256: and 64 lower-case hexadecimal digits");
  }
  const Json* run = json.Find("config");
  if (run == nullptr || run->is_null()) return config;
  TRY(CheckNames(*run, kConfigNames, "the image's \"config\""));
  config.env = TRY(StringsOf(*run, "Env"));
  // A name without a value sets nothing, nor does a value without a name.
  std::erase_if(config.env, [](const std::string& variable) {
    return variable.starts_with('=') || variable.find('=') == std::string::npos;
  });
  config.user = TRY(StringOf(*run, "User"));
  config.working_dir = TRY(StringOf(*run, "WorkingDir"));
  config.entrypoint = TRY(StringsOf(*run, "Entrypoint"));
  config.command = TRY(StringsOf(*run, "Cmd"));
  return config;
}

Result<Descriptor> ChoosePlatform(const Index& index, const Platform& platform) {
  const Descriptor* best = nullptr;
  std::string offered;
  for (const Descriptor& entry : index.manifests) {
    const int fit = Fit(entry.platform, platform);
    if (fit > (best == nullptr ? 0 : Fit(best->platform, platform))) best = &entry;
    if (!entry.platform.os.empty() && entry.platform.os != "unknown" && offered.size() < 300) {
      offered += (offered.empty() ? "" : ", ") + Shown(entry.platform);
    }
  }
  if (best != nullptr) return *best;
  return Error{Code::kNotFound, "no image for " + Shown(platform) + "; available: " +
                                    (offered.empty() ? "none with a platform" : offered)};
}

}  // namespace image
