// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/snapshot_document.h"

#include <optional>
#include <utility>

#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "image/source/manifest.h"

namespace session {
namespace {

constexpr char kConfigType[] = "application/vnd.oci.image.config.v1+json";
constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";
constexpr char kRefName[] = "org.opencontainers.image.ref.name";
// The member of the configuration that is ours; others ignore it.
constexpr char kMember[] = "dev.agentic-ci.snapshot";

Error NotASnapshot() {
  return {Code::kInvalid, "not a snapshot of a sandbox", "agentic-ci sandbox snapshot NAME"};
}

codec::Json Descriptor(const char* type, const DocumentOf& document) {
  codec::Json json;
  json.Set("mediaType", type);
  json.Set("digest", document.digest);
  json.Set("size", document.bytes);
  return json;
}

// Paths and a shell's state are bytes, and JSON is text.
codec::Json Bytes(std::string_view bytes) { return codec::EncodeBase64(bytes); }

std::optional<std::string> BytesAt(const codec::Json& json, const char* name) {
  const codec::Json* member = json.Find(name);
  if (member == nullptr || member->string() == nullptr) return std::nullopt;
  return codec::DecodeBase64(*member->string());
}

Result<codec::Json::Array> ManifestsOf(std::string_view index) {
  codec::Json json = TRY(codec::ParseJson(index).Context("index.json"));
  const codec::Json* entries = json.Find("manifests");
  if (entries == nullptr || entries->array() == nullptr) {
    return Error{Code::kInvalid, "index.json is not an index of images"};
  }
  return *entries->array();
}

std::string TagOf(const codec::Json& entry) {
  const codec::Json* notes = entry.Find("annotations");
  return notes == nullptr ? "" : notes->StringAt(kRefName);
}

std::string RenderIndex(codec::Json manifests) {
  codec::Json json;
  json.Set("schemaVersion", 2);
  json.Set("mediaType", kIndexType);
  json.Set("manifests", std::move(manifests));
  return codec::RenderJson(json);
}

}  // namespace

Result<std::string> RenderSnapshotConfig(const TakenSnapshot& snapshot,
                                         const std::string& diff_id) {
  const SnapshotFacts& facts = snapshot.facts;
  codec::Json own;
  own.Set("version", 1);
  own.Set("checkout", Bytes(facts.checkout));
  own.Set("shell", facts.shell);
  own.Set("cwd", Bytes(facts.cwd));
  own.Set("state", Bytes(snapshot.state));
  codec::Json environment = codec::Json::EmptyArray();
  for (const std::string& variable : facts.environment) environment.Push(Bytes(variable));
  own.Set("environment", std::move(environment));
  own.Set("policy_sha256", facts.policy_sha256);
  if (!facts.narrowed_by.empty()) own.Set("narrowed_by", facts.narrowed_by);
  codec::Json rootfs;
  rootfs.Set("type", "layers");
  rootfs.Set("diff_ids", codec::Json::FromStrings({diff_id}));
  image::Platform platform = image::HostPlatform();
  codec::Json json;
  json.Set("architecture", platform.architecture);
  json.Set("os", platform.os);
  if (!platform.variant.empty()) json.Set("variant", platform.variant);
  json.Set("config", codec::Json::EmptyObject());
  json.Set("rootfs", std::move(rootfs));
  json.Set(kMember, std::move(own));
  std::string text = codec::RenderJsonLine(json);
  if (text.size() > image::kConfigBytesMax) {
    return Error{Code::kInvalid,
                 "the shell's variables and functions are too large for a snapshot"};
  }
  return text;
}

Result<SnapshotConfig> ParseSnapshotConfig(std::string_view text) {
  codec::Json json = TRY(codec::ParseJson(text));
  image::ImageConfig config = TRY(image::ParseImageConfig(text));
  const codec::Json* own = json.Find(kMember);
  if (own == nullptr || own->IntegerAt("version") != 1 || config.diff_ids.size() != 1) {
    return NotASnapshot();
  }
  SnapshotConfig snapshot;
  SnapshotFacts& facts = snapshot.request.facts;
  std::optional<std::string> checkout = BytesAt(*own, "checkout");
  std::optional<std::string> cwd = BytesAt(*own, "cwd");
  std::optional<std::string> state = BytesAt(*own, "state");
  const codec::Json* environment = own->Find("environment");
  facts.shell = own->StringAt("shell");
  if (!checkout || !checkout->starts_with('/') || !cwd || !state || facts.shell.empty() ||
      environment == nullptr || environment->array() == nullptr) {
    return NotASnapshot();
  }
  for (const codec::Json& variable : *environment->array()) {
    std::optional<std::string> bytes;
    if (variable.string() != nullptr) bytes = codec::DecodeBase64(*variable.string());
    if (!bytes) return NotASnapshot();
    facts.environment.push_back(std::move(*bytes));
  }
  facts.checkout = std::move(*checkout);
  facts.cwd = std::move(*cwd);
  facts.policy_sha256 = own->StringAt("policy_sha256");
  facts.narrowed_by = own->StringAt("narrowed_by");
  snapshot.state = std::move(*state);
  snapshot.request.diff_id = config.diff_ids.front();
  return snapshot;
}

std::string RenderSnapshotManifest(const DocumentOf& config, const DocumentOf& layer) {
  codec::Json json;
  json.Set("schemaVersion", 2);
  json.Set("mediaType", kManifestType);
  json.Set("config", Descriptor(kConfigType, config));
  codec::Json layers;
  layers.Push(Descriptor(kSnapshotLayerType, layer));
  json.Set("layers", std::move(layers));
  return codec::RenderJsonLine(json);
}

Result<std::string> AddToIndex(std::string_view index, const DocumentOf& manifest,
                               const std::string& tag) {
  codec::Json list = codec::Json::EmptyArray();
  for (const codec::Json& entry : index.empty() ? codec::Json::Array() : TRY(ManifestsOf(index))) {
    std::string name = TagOf(entry);
    bool same = entry.StringAt("digest") == manifest.digest && name == tag;
    if (!same && (tag.empty() || name != tag)) list.Push(entry);
  }
  codec::Json added = Descriptor(kManifestType, manifest);
  if (!tag.empty()) {
    codec::Json notes;
    notes.Set(kRefName, tag);
    added.Set("annotations", std::move(notes));
  }
  list.Push(std::move(added));
  return RenderIndex(std::move(list));
}

Result<std::vector<IndexEntry>> EntriesOfIndex(std::string_view index) {
  std::vector<IndexEntry> entries;
  for (const codec::Json& entry : TRY(ManifestsOf(index))) {
    entries.push_back({entry.StringAt("digest"), TagOf(entry)});
  }
  return entries;
}

Result<std::optional<std::string>> RemoveFromIndex(std::string_view index,
                                                   const std::string& tag_or_digest) {
  bool by_digest = image::IsDigest(tag_or_digest);
  // As cosign and others tag what is about an image: "sha256-HEX.sig".
  std::string about = by_digest ? "sha256-" + tag_or_digest.substr(sizeof "sha256:" - 1) : "";
  codec::Json list = codec::Json::EmptyArray();
  bool found = false;
  for (const codec::Json& entry : TRY(ManifestsOf(index))) {
    std::string tag = TagOf(entry);
    bool is = by_digest ? entry.StringAt("digest") == tag_or_digest : tag == tag_or_digest;
    found = found || is;
    if (!is && (about.empty() || !tag.starts_with(about))) list.Push(entry);
  }
  if (!found) return std::optional<std::string>();
  return std::optional(RenderIndex(std::move(list)));
}

}  // namespace session
