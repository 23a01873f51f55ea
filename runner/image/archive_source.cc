// SPDX-License-Identifier: Apache-2.0
#include "image/archive_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/sys.h"
#include "codec/data/json.h"
#include "image/unpack/tar_reader.h"

namespace image {
namespace {

using codec::Json;

constexpr size_t kEntriesMax = 8192;
constexpr size_t kListBytesMax = 1 << 20;  // manifest.json
constexpr size_t kBlockBytes = 512;
constexpr size_t kArchiveReadBytes = 256 * 1024;
constexpr int kLinkedFilesMax = 8;

// The place of an entry's bytes in the file, or the entry that it is another name of.
struct Place {
  int64_t offset = 0;
  int64_t size = 0;
  std::string link;
};

// "a/../b/./c" -> "b/c"; nullopt if it leads out.
std::optional<std::string> Normal(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string normal;
  for (const std::string& part : parts) normal += (normal.empty() ? "" : "/") + part;
  return normal;
}

// A tar whose entries' places are known.
class TarFile {
 public:
  static Result<TarFile> Open(const std::string& path) {
    TarFile tar;
    tar.file_ = TRY(sys::Open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC).Context(path));
    struct stat status {};
    if (::fstat(tar.file_.get(), &status) != 0) return Errno("fstat");
    if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, path + " is not a file"};
    TRY(tar.ReadIndex(status.st_size).Context("reading " + path));
    return tar;
  }

  // Fails with kNotFound if there is nothing of that name.
  Result<Place> Find(const std::string& name) const {
    std::string at = name;
    for (int links = 0; links < kLinkedFilesMax; ++links) {
      auto found = places_.find(at);
      if (found == places_.end()) break;
      if (found->second.link.empty()) return found->second;
      const size_t slash = at.rfind('/');
      const std::string folder = slash == std::string::npos ? "" : at.substr(0, slash);
      std::optional<std::string> target = Normal(folder + "/" + found->second.link);
      if (!target) break;
      at = *target;
    }
    return Error{Code::kNotFound, "it does not contain the file \"" + name.substr(0, 200) + "\""};
  }

  // Up to `bytes_max` bytes of `place` from `offset` on, into `buffer`.
  Result<std::string_view> Read(const Place& place, int64_t offset, std::string& buffer) const {
    buffer.resize(kArchiveReadBytes);
    const int64_t left = place.size - offset;
    const size_t wanted = static_cast<size_t>(std::min<int64_t>(left, kArchiveReadBytes));
    ssize_t got = 0;
    do {
      got = ::pread(file_.get(), buffer.data(), wanted, place.offset + offset);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return Errno("pread");
    return std::string_view(buffer.data(), static_cast<size_t>(got));
  }

  Result<std::string> ReadWhole(const Place& place, size_t bytes_max) const {
    if (place.size > static_cast<int64_t>(bytes_max)) {
      return Error{Code::kInvalid, "a file of more than " + std::to_string(bytes_max) + " bytes"};
    }
    std::string whole;
    std::string buffer;
    while (static_cast<int64_t>(whole.size()) < place.size) {
      const std::string_view piece = TRY(Read(place, static_cast<int64_t>(whole.size()), buffer));
      if (piece.empty()) return Error{Code::kInvalid, "it is truncated"};
      whole += piece;
    }
    return whole;
  }

 private:
  TarFile() = default;

  // A reader for each entry: given one block at a time it takes no byte beyond the head, so that
  // contents are passed over by not reading them.
  Status ReadIndex(int64_t file_bytes) {
    const Place all{0, file_bytes, ""};
    std::string buffer;
    for (int64_t at = 0; at < file_bytes;) {
      const auto input = [&]() -> Result<std::string_view> {
        const std::string_view piece = TRY(Read(all, at, buffer));
        const std::string_view block = piece.substr(0, kBlockBytes);
        at += static_cast<int64_t>(block.size());
        return block;
      };
      TarReader reader(input);
      std::optional<TarEntry> entry = TRY(reader.Next());
      if (!entry) return Ok();
      const bool file = entry->type == TarType::kFile;
      if (file && (entry->sparse || entry->size > file_bytes - at)) {
        return Error{Code::kInvalid, "an entry is truncated or sparse"};
      }
      std::optional<std::string> name = Normal(entry->path);
      const bool link = entry->type == TarType::kSymlink;
      if (name && (file || link)) {
        places_[*name] = {at, entry->size, link ? entry->link : ""};
        if (places_.size() > kEntriesMax) return Error{Code::kInvalid, "too many entries"};
      }
      if (!file) continue;
      constexpr int64_t kBlock = kBlockBytes;
      at += (entry->size + kBlock - 1) / kBlock * kBlock;
    }
    return Ok();
  }

  Fd file_;
  std::map<std::string, Place> places_;
};

class Archive : public Source {
 public:
  Archive(TarFile tar, std::string tag, const SourceOptions& options)
      : tar_(std::move(tar)), tag_(std::move(tag)), progress_(options.progress) {}

  // Makes the manifest up from an entry of manifest.json.
  Status Load(const Json& image);

  Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline) override {
    if (tag_or_digest == tag_ || tag_or_digest == manifest_.digest) return manifest_;
    return Error{Code::kNotFound,
                 "the archive does not contain the manifest \"" + tag_or_digest + "\""};
  }
  Result<std::vector<Descriptor>> FetchReferrers(const std::string&, Deadline) override {
    return std::vector<Descriptor>();
  }
  Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                Deadline deadline) override {
    return CollectBlob(*this, blob, bytes_max, deadline);
  }
  Status StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart&,
                    Deadline deadline) override;

 private:
  // Its media type and digest: what is compressed has another than its diff id.
  Result<Descriptor> DescribeLayer(const Place& place, const std::string& diff_id) const;

  TarFile tar_;
  const std::string tag_;
  const std::function<void(const BlobProgress&)> progress_;
  Document manifest_;
  std::map<std::string, Place> blobs_;  // The places by digest.
};

Json DescriptorJson(const Descriptor& descriptor) {
  Json json = Json::EmptyObject();
  json.Set("mediaType", descriptor.media_type);
  json.Set("digest", descriptor.digest);
  json.Set("size", descriptor.size);
  return json;
}

Result<Descriptor> Archive::DescribeLayer(const Place& place, const std::string& diff_id) const {
  std::string buffer;
  Descriptor layer;
  layer.media_type = "application/vnd.oci.image.layer.v1.tar";
  layer.size = place.size;
  std::string_view piece = TRY(tar_.Read(place, 0, buffer));
  const bool gzip = piece.starts_with("\x1f\x8b");
  const bool zstd = piece.starts_with("\x28\xb5\x2f\xfd");
  if (!gzip && !zstd) {
    layer.digest = diff_id;
    return layer;
  }
  layer.media_type += gzip ? "+gzip" : "+zstd";
  codec::Sha256 hash;
  for (int64_t at = 0; at < place.size;) {
    piece = TRY(tar_.Read(place, at, buffer));
    if (piece.empty()) return Error{Code::kInvalid, "it is truncated"};
    hash.Update(piece);
    at += static_cast<int64_t>(piece.size());
  }
  layer.digest = "sha256:" + hash.Hex();
  return layer;
}

Status Archive::Load(const Json& image) {
  const Json* layers = image.Find("Layers");
  if (layers == nullptr || layers->array() == nullptr) {
    return Error{Code::kInvalid, "manifest.json has no \"Layers\""};
  }
  const Place config_place = TRY(tar_.Find(image.StringAt("Config")));
  const std::string config_bytes = TRY(tar_.ReadWhole(config_place, kConfigBytesMax));
  const ImageConfig config = TRY(ParseImageConfig(config_bytes));
  if (layers->array()->size() > kLayersMax) {
    return Error{Code::kInvalid, "more than " + std::to_string(kLayersMax) + " layers"};
  }
  if (config.diff_ids.size() != layers->array()->size()) {
    return Error{Code::kInvalid, "the configuration does not have one diff id per layer"};
  }
  Descriptor config_descriptor;
  config_descriptor.media_type = "application/vnd.oci.image.config.v1+json";
  config_descriptor.digest = DigestOf(config_bytes);
  config_descriptor.size = config_place.size;
  blobs_[config_descriptor.digest] = config_place;

  Json manifest = Json::EmptyObject();
  manifest.Set("schemaVersion", 2);
  manifest.Set("mediaType", "application/vnd.oci.image.manifest.v1+json");
  manifest.Set("config", DescriptorJson(config_descriptor));
  Json list = Json::EmptyArray();
  for (size_t at = 0; at < config.diff_ids.size(); ++at) {
    const std::string* name = (*layers->array())[at].string();
    if (name == nullptr) return Error{Code::kInvalid, "a layer has no name"};
    const Place place = TRY(tar_.Find(*name));
    const Descriptor layer = TRY(DescribeLayer(place, config.diff_ids[at]));
    blobs_[layer.digest] = place;
    list.Push(DescriptorJson(layer));
  }
  manifest.Set("layers", std::move(list));
  manifest_ = TRY(MakeDocument("application/vnd.oci.image.manifest.v1+json",
                               codec::RenderJsonLine(manifest), ""));
  return Ok();
}

Status Archive::StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart&,
                           Deadline deadline) {
  auto found = blobs_.find(blob.digest);
  if (found == blobs_.end())
    return Error{Code::kNotFound, "the archive does not contain " + blob.digest};
  std::string buffer;
  const auto read = [&](int64_t offset) { return tar_.Read(found->second, offset, buffer); };
  return StreamLocalBlob(blob, read, sink, progress_, deadline);
}

// Returns whether `image` has the name that `reference` asks for; any has if it asks for none.
bool IsNamed(const Json& image, const Reference& reference) {
  if (reference.repository.empty()) return true;
  const Json* tags = image.Find("RepoTags");
  if (tags == nullptr || tags->array() == nullptr) return false;
  for (const Json& tag : *tags->array()) {
    if (tag.string() == nullptr) continue;
    Result<Reference> parsed = ParseReference(*tag.string());
    if (parsed.ok() && parsed.value().Name() == reference.host + "/" + reference.repository &&
        parsed.value().tag == reference.tag) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Source>> OpenArchive(const Reference& reference,
                                            const SourceOptions& options) {
  const std::string& path = reference.path;
  TarFile tar = TRY(TarFile::Open(path));
  Result<Place> place = tar.Find("manifest.json");
  if (!place.ok()) {
    return Error{Code::kInvalid,
                 path + " is not an archive made by `docker save`: it has no manifest.json",
                 "skopeo copy oci-archive:" + path + " oci:DIRECTORY"};
  }
  const std::string bytes = TRY(tar.ReadWhole(place.value(), kListBytesMax));
  const Json list = TRY(codec::ParseJson(bytes).Context(path + ": manifest.json"));
  if (list.array() == nullptr) return Error{Code::kInvalid, path + ": manifest.json is not a list"};
  const Json* chosen = nullptr;
  int named = 0;
  for (const Json& image : *list.array()) {
    if (!IsNamed(image, reference)) continue;
    chosen = &image;
    ++named;
  }
  if (named == 0) return Error{Code::kNotFound, path + " has no image of that name"};
  if (named > 1) {
    return Error{Code::kInvalid, path + " has " + std::to_string(named) + " images",
                 "docker-archive:" + path + ":NAME:TAG"};
  }
  auto archive = std::make_unique<Archive>(std::move(tar), reference.tag, options);
  TRY(archive->Load(*chosen).Context(path));
  return std::unique_ptr<Source>(std::move(archive));
}

}  // namespace image
