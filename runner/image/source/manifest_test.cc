// SPDX-License-Identifier: Apache-2.0
#include "image/source/manifest.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"

namespace image {
namespace {

constexpr char kOciManifest[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kOciIndex[] = "application/vnd.oci.image.index.v1+json";
constexpr char kDockerManifest[] = "application/vnd.docker.distribution.manifest.v2+json";
constexpr char kConfigType[] = "application/vnd.oci.image.config.v1+json";
constexpr char kLayerType[] = "application/vnd.oci.image.layer.v1.tar+gzip";
const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string DescriptorText(const std::string& type, const std::string& more = "") {
  return R"({"mediaType":")" + type + R"(","digest":")" + kDigest + R"(","size":7)" + more + "}";
}

// A manifest with `more` members behind its own.
std::string ManifestText(const std::string& more = "", const std::string& config = kConfigType,
                         const std::string& layer = kLayerType) {
  return R"({"schemaVersion":2,"config":)" + DescriptorText(config) + R"(,"layers":[)" +
         DescriptorText(layer) + "]" + more + "}";
}

std::string IndexText(const std::string& entries, const std::string& more = "") {
  return R"({"schemaVersion":2,"manifests":[)" + entries + "]" + more + "}";
}

std::string Refusal(const std::string& text, const std::string& type) {
  Result<std::variant<Index, Manifest>> parsed = ParseManifest(text, type);
  if (parsed.ok()) return "";
  CHECK(parsed.error().code == Code::kInvalid);
  return parsed.error().what;
}

bool Contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

Manifest Parsed(const std::string& text) {
  return std::get<Manifest>(ParseManifest(text, kOciManifest).value());
}

TEST_CASE("ParseManifest reads a manifest") {
  Manifest manifest = Parsed(ManifestText(R"(,"subject":)" + DescriptorText(kOciManifest) +
                                          R"(,"annotations":{"a":"b"})"));
  CHECK(manifest.config.media_type == kConfigType);
  CHECK(manifest.config.size == 7);
  REQUIRE(manifest.layers.size() == 1);
  CHECK(manifest.layers[0].digest == kDigest);
  CHECK(manifest.subject == kDigest);
  CHECK(manifest.artifact_type == kConfigType);
  CHECK(Parsed(ManifestText(R"(,"artifactType":"x/y")")).artifact_type == "x/y");
  CHECK(Parsed(ManifestText(R"(,"subject":null,"mediaType":null)")).subject.empty());
}

TEST_CASE("ParseManifest reads an index, its platforms and annotations") {
  Result<std::variant<Index, Manifest>> parsed = ParseManifest(
      IndexText(DescriptorText(kOciManifest,
                               R"(,"platform":{"os":"linux","architecture":"arm64","variant":"v8"},
                               "annotations":{"k":"v"},"artifactType":"t")")),
      kOciIndex);
  REQUIRE(parsed.ok());
  const Descriptor& entry = std::get<Index>(parsed.value()).manifests.at(0);
  CHECK(entry.platform.architecture == "arm64");
  CHECK(entry.platform.variant == "v8");
  CHECK(entry.annotations.at("k") == "v");
  CHECK(entry.artifact_type == "t");
}

TEST_CASE("ParseManifest takes a content type with parameters, or one that says nothing") {
  for (const char* type : {"application/vnd.oci.image.manifest.v1+json; charset=utf-8",
                           "application/json", "", "text/plain", kDockerManifest}) {
    CAPTURE(type);
    CHECK(Refusal(ManifestText(), type).empty());
  }
}

TEST_CASE("ParseManifest refuses what two readers could read in two ways") {
  CHECK(Contains(Refusal(ManifestText(R"(,"manifests":[])"), kOciManifest), "ambiguous"));
  CHECK(Contains(Refusal(IndexText("", R"(,"layers":[])"), kOciIndex), "ambiguous"));
  CHECK(Contains(Refusal(IndexText("", R"(,"config":{})"), kOciIndex), "ambiguous"));
  CHECK(Contains(Refusal(ManifestText(), kOciIndex), "is a manifest"));
  CHECK(Contains(Refusal(IndexText(""), kOciManifest), "is an index"));
  CHECK(Contains(Refusal(ManifestText(R"(,"mediaType":")" + std::string(kOciIndex) + "\""), ""),
                 "is a manifest"));
  CHECK(Contains(Refusal(ManifestText(R"(,"mediaType":")" + std::string(kDockerManifest) + "\""),
                         kOciManifest),
                 "says that it is"));
  CHECK(Contains(Refusal(ManifestText(R"(,"mediaType":"x/y")"), ""), "says that it is x/y"));
  CHECK_FALSE(Refusal(ManifestText(R"(,"layers":[])"), kOciManifest).empty());  // Twice.
  CHECK(Contains(Refusal(ManifestText(R"(,"Layers":[])"), kOciManifest), "except for case"));
  CHECK(Contains(Refusal(ManifestText(R"(,"MANIFESTS":[])"), kOciManifest), "except for case"));
}

TEST_CASE("ParseManifest refuses schema 1 with what to do about it") {
  const std::string old = R"({"schemaVersion":1,"fsLayers":[],"signatures":[]})";
  Result<std::variant<Index, Manifest>> parsed =
      ParseManifest(old, "application/vnd.docker.distribution.manifest.v1+prettyjws");
  REQUIRE_FALSE(parsed.ok());
  CHECK(Contains(parsed.error().what, "schema 1"));
  CHECK_FALSE(parsed.error().hint.empty());
  CHECK(Contains(Refusal(old, "application/json"), "schema 1"));
}

TEST_CASE("ParseManifest refuses malformed documents") {
  const std::string config = DescriptorText(kConfigType);
  for (const std::string& bad : std::initializer_list<std::string>{
           "", "[]", "null", "{}", "x", R"({"schemaVersion":2})", R"({"schemaVersion":"2"})",
           R"({"schemaVersion":3,"manifests":[]})", R"({"schemaVersion":2,"manifests":{}})",
           R"({"schemaVersion":2,"manifests":[1]})", R"({"schemaVersion":2,"layers":[]})",
           R"({"schemaVersion":2,"config":)" + config + "}",
           R"({"schemaVersion":2,"config":[],"layers":[]})", ManifestText(R"(,"artifactType":7)"),
           ManifestText(R"(,"subject":"x")"),
           IndexText(DescriptorText(kOciManifest, R"(,"platform":"linux")")),
           IndexText(DescriptorText(kOciManifest, R"(,"annotations":{"a":1})")),
           IndexText(DescriptorText(kOciManifest, R"(,"annotations":[])")),
           IndexText(DescriptorText("a\\u0000b"))}) {
    CAPTURE(bad);
    CHECK_FALSE(Refusal(bad, "").empty());
  }
}

TEST_CASE("A descriptor's digest is strict and its size a number of bytes") {
  const auto with = [](const std::string& digest, const std::string& size) {
    return IndexText(R"({"mediaType":"a","digest":")" + digest + R"(","size":)" + size + "}");
  };
  CHECK(Refusal(with(kDigest, "0"), kOciIndex).empty());
  for (const char* size :
       {"-1", "1.5", "\"7\"", "null", "1e3", "99999999999999999999", "2199023255552"}) {
    CAPTURE(size);
    CHECK(Contains(Refusal(with(kDigest, size), kOciIndex), "size"));
  }
  for (const char* digest : {"", "sha256:../../x", "sha256:abc", "md5:abc"}) {
    CAPTURE(digest);
    CHECK(Contains(Refusal(with(digest, "7"), kOciIndex), "digest"));
  }
}

TEST_CASE("Lists are bounded") {
  std::string layers;
  for (size_t at = 0; at <= kLayersMax; ++at) {
    layers += (at == 0 ? "" : ",") + DescriptorText(kLayerType);
  }
  const std::string text = R"({"schemaVersion":2,"config":)" + DescriptorText(kConfigType) +
                           R"(,"layers":[)" + layers + "]}";
  CHECK(Contains(Refusal(text, kOciManifest), "more than 499"));
}

TEST_CASE("CheckRunnable tells images from what registries also hold") {
  CHECK(CheckRunnable(Parsed(ManifestText())).ok());
  for (const char* layer :
       {"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+zstd",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}) {
    CAPTURE(layer);
    CHECK(CheckRunnable(Parsed(ManifestText("", kConfigType, layer))).ok());
  }
  Status helm = CheckRunnable(Parsed(ManifestText("", "application/vnd.cncf.helm.config.v1+json")));
  CHECK(Contains(helm.error().what, "Helm chart"));
  CHECK_FALSE(helm.error().hint.empty());
  CHECK_FALSE(CheckRunnable(Parsed(ManifestText("", "application/vnd.oci.empty.v1+json"))).ok());
  CHECK_FALSE(CheckRunnable(Parsed(ManifestText("", kConfigType, "application/x"))).ok());
  CHECK_FALSE(
      CheckRunnable(Parsed(ManifestText("", kConfigType, std::string(kLayerType) + "+gzip"))).ok());
  Manifest bare = Parsed(ManifestText());
  bare.layers.clear();
  CHECK_FALSE(CheckRunnable(bare).ok());
}

TEST_CASE("ParseImageConfig reads what is said about running the image") {
  Result<ImageConfig> config = ParseImageConfig(
      R"({"os":"linux","architecture":"amd64","config":{"Env":["A=b","C=","D","=e","==f"],"User":"1000",
      "WorkingDir":"/w","Entrypoint":["/e","x"],"Cmd":null,"Volumes":{"/../../x":{}}},
      "history":[{}],"rootfs":{"type":"layers","diff_ids":[")" +
      kDigest + "\"]}}");
  REQUIRE(config.ok());
  CHECK(config.value().platform.architecture == "amd64");
  CHECK(config.value().env == std::vector<std::string>{"A=b", "C="});
  CHECK(config.value().user == "1000");
  CHECK(config.value().working_dir == "/w");
  CHECK(config.value().entrypoint == std::vector<std::string>{"/e", "x"});
  CHECK(config.value().command.empty());
  CHECK(config.value().diff_ids.size() == 1);
}

TEST_CASE("ParseImageConfig refuses what is malformed") {
  const std::string rootfs = R"("rootfs":{"type":"layers","diff_ids":[]})";
  CHECK(ParseImageConfig("{" + rootfs + "}").ok());
  CHECK(ParseImageConfig("{" + rootfs + R"(,"config":null})").ok());
  for (const std::string& bad : std::initializer_list<std::string>{
           "", "[]", "{}", R"({"rootfs":{"diff_ids":[]}})",
           R"({"rootfs":{"type":"layers","diff_ids":["sha256:x"]}})",
           R"({"rootfs":{"type":"layers","diff_ids":7}})", "{" + rootfs + R"(,"config":[]})",
           "{" + rootfs + R"(,"config":{"Env":["A=\u0000"]}})",
           "{" + rootfs + R"(,"config":{"Cmd":"sh"}})", "{" + rootfs + R"(,"config":{"User":0}})",
           "{" + rootfs + R"(,"config":{"user":"root"}})", "{" + rootfs + "," + rootfs + "}",
           "{" + rootfs + R"(,"os":1})"}) {
    CAPTURE(bad);
    CHECK(CodeOf(ParseImageConfig(bad)) == Code::kInvalid);
  }
}

Descriptor Entry(const std::string& os, const std::string& architecture,
                 const std::string& variant = "") {
  Descriptor entry;
  entry.digest = os + architecture + variant;
  entry.platform = {os, architecture, variant};
  return entry;
}

TEST_CASE("ChoosePlatform takes the first entry that fits best") {
  Index index{{Entry("unknown", "unknown"), Entry("windows", "amd64"),
               Entry("linux", "amd64", "v3"), Entry("linux", "amd64"), Entry("linux", "arm64"),
               Entry("linux", "arm", "v6"), Entry("linux", "arm", "v7")}};
  const auto chosen = [&](const Platform& platform) {
    Result<Descriptor> entry = ChoosePlatform(index, platform);
    return entry.ok() ? entry.value().digest : entry.error().what;
  };
  CHECK(chosen({"linux", "amd64", ""}) == "linuxamd64");
  CHECK(chosen({"linux", "amd64", "v3"}) == "linuxamd64v3");
  CHECK(chosen({"linux", "arm64", "v8"}) == "linuxarm64");
  CHECK(chosen({"linux", "arm", "v7"}) == "linuxarmv7");
  CHECK(chosen({"linux", "arm", "v5"}) ==
        "no image for linux/arm/v5; available: windows/amd64, linux/amd64/v3, linux/amd64, "
        "linux/arm64, linux/arm/v6, linux/arm/v7");
  CHECK(ChoosePlatform({}, {"linux", "amd64", ""}).error().code == Code::kNotFound);
  CHECK(HostPlatform().os == "linux");
}

}  // namespace
}  // namespace image
