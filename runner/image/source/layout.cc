// SPDX-License-Identifier: Apache-2.0
#include "image/source/layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sys.h"

namespace image {
namespace {

constexpr size_t kLayoutReadBytes = 256 * 1024;
constexpr char kRefName[] = "org.opencontainers.image.ref.name";

// The mark of `cosign save` on what it wrote beside the image: pkg/oci/layout.
constexpr char kKind[] = "kind";
constexpr std::string_view kKindSignatures = "dev.cosignproject.cosign/sigs";
constexpr std::string_view kKindAttestations = "dev.cosignproject.cosign/atts";

// "sha256-<64 digits>", and what cosign puts behind it: never an image.
bool IsReferrerTag(std::string_view tag) {
  return tag.starts_with("sha256-") && tag.size() >= 71 &&
         IsDigest("sha256:" + std::string(tag.substr(7, 64)));
}

bool MayBeImage(const Descriptor& entry) {
  const std::string kind = entry.Annotation(kKind);
  return kind != kKindSignatures && kind != kKindAttestations && entry.artifact_type.empty() &&
         !IsReferrerTag(entry.Annotation(kRefName));
}

class Layout : public Source {
 public:
  Layout(std::string path, Fd directory, Index index, const SourceOptions& options)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        index_(std::move(index)),
        progress_(options.progress) {}

  Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline deadline) override;
  Result<std::vector<Descriptor>> FetchReferrers(const std::string& digest,
                                                 Deadline deadline) override;
  Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                Deadline deadline) override {
    return CollectBlob(*this, blob, bytes_max, deadline);
  }
  Status StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart& restart,
                    Deadline deadline) override;

 private:
  // Finds an entry by digest, by tag, or, with an empty tag, as the only image there is.
  Result<Descriptor> Find(const std::string& tag_or_digest) const;

  std::string path_;
  Fd directory_;
  Index index_;
  std::function<void(const BlobProgress&)> progress_;
};

// A blob's file: within the layout, no link, no device that could keep us waiting.
Result<Fd> OpenBlob(int directory, const std::string& digest) {
  Fd file = TRY(sys::OpenBeneath(directory, "blobs/sha256/" + digest.substr(7),
                                 O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Errno("fstat");
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, digest + ": not a file"};
  return file;
}

Result<Descriptor> Layout::Find(const std::string& tag_or_digest) const {
  std::vector<const Descriptor*> images;
  std::string names;
  std::string_view kind;
  if (IsReferrerTag(tag_or_digest) && tag_or_digest.ends_with(".sig")) kind = kKindSignatures;
  if (IsReferrerTag(tag_or_digest) && tag_or_digest.ends_with(".att")) kind = kKindAttestations;
  for (const Descriptor& entry : index_.manifests) {
    const std::string name = entry.Annotation(kRefName);
    if (entry.digest == tag_or_digest || (!name.empty() && name == tag_or_digest)) return entry;
    if (!kind.empty() && entry.Annotation(kKind) == kind) return entry;
    if (!MayBeImage(entry)) continue;
    images.push_back(&entry);
    if (names.size() < 300) names += (names.empty() ? "" : ", ") + (name.empty() ? "?" : name);
  }
  if (tag_or_digest.empty() && images.size() == 1) return *images[0];
  if (IsDigest(tag_or_digest)) {  // A child of an index is listed nowhere else.
    Descriptor child;
    child.digest = tag_or_digest;
    return child;
  }
  if (tag_or_digest.empty() && !images.empty()) {
    return Error{Code::kInvalid, path_ + " has several images: " + names,
                 "oci:" + path_ + ":" + names.substr(0, names.find(','))};
  }
  return Error{Code::kNotFound, path_ + " has no image \"" + tag_or_digest + "\"; it has " +
                                    (names.empty() ? "none" : names)};
}

Result<Document> Layout::FetchManifest(const std::string& tag_or_digest, Deadline) {
  const Descriptor entry = TRY(Find(tag_or_digest));
  Fd file = TRY(OpenBlob(directory_.get(), entry.digest));
  std::string bytes = TRY(sys::ReadAll(file.get(), kManifestBytesMax).Context(entry.digest));
  if (!entry.media_type.empty() && static_cast<int64_t>(bytes.size()) != entry.size) {
    return Error{Code::kRefused, entry.digest + " does not have the size that its descriptor says"};
  }
  return MakeDocument(entry.media_type, std::move(bytes), entry.digest);
}

Result<std::vector<Descriptor>> Layout::FetchReferrers(const std::string& digest,
                                                       Deadline deadline) {
  std::vector<Descriptor> referrers;
  for (const Descriptor& entry : index_.manifests) {
    Result<Document> document = FetchManifest(entry.digest, deadline);
    if (!document.ok() && document.error().code == Code::kNotFound) continue;
    const Document read = TRY(std::move(document));
    Result<std::variant<Index, Manifest>> parsed = ParseManifest(read.bytes, read.media_type);
    if (!parsed.ok()) continue;  // It is listed, which does not make it a manifest.
    const Manifest* manifest = std::get_if<Manifest>(&parsed.value());
    if (manifest != nullptr && manifest->subject == digest) referrers.push_back(entry);
  }
  Result<Document> fallback = FetchManifest("sha256-" + digest.substr(7), deadline);
  if (!fallback.ok() && fallback.error().code == Code::kNotFound) return referrers;
  const Document read = TRY(std::move(fallback));
  const std::variant<Index, Manifest> parsed = TRY(ParseManifest(read.bytes, read.media_type));
  const Index* index = std::get_if<Index>(&parsed);
  if (index == nullptr) return Error{Code::kInvalid, "the referrers' tag is not an index"};
  referrers.insert(referrers.end(), index->manifests.begin(), index->manifests.end());
  return referrers;
}

Status Layout::StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart&,
                          Deadline deadline) {
  Fd file = TRY(OpenBlob(directory_.get(), blob.digest));
  std::string piece(kLayoutReadBytes, '\0');
  const auto read = [&](int64_t offset) -> Result<std::string_view> {
    ssize_t got = 0;
    do {
      got = ::pread(file.get(), piece.data(), piece.size(), offset);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return Errno("pread");
    return std::string_view(piece.data(), static_cast<size_t>(got));
  };
  return StreamLocalBlob(blob, read, sink, progress_, deadline);
}

}  // namespace

Result<std::unique_ptr<Source>> OpenLayout(const std::string& directory,
                                           const SourceOptions& options) {
  Fd fd = TRY(sys::Open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC).Context(directory));
  Result<Fd> opened = sys::OpenBeneath(fd.get(), "index.json", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (!opened.ok()) {
    return Error{Code::kInvalid, directory + " is not an OCI layout: it has no index.json",
                 "skopeo copy docker://IMAGE oci:" + directory};
  }
  Fd file = std::move(opened).value();
  const std::string bytes = TRY(sys::ReadAll(file.get(), kManifestBytesMax).Context(directory));
  std::variant<Index, Manifest> parsed =
      TRY(ParseManifest(bytes, "").Context(directory + "/index.json"));
  Index* index = std::get_if<Index>(&parsed);
  if (index == nullptr) return Error{Code::kInvalid, directory + "/index.json is not an index"};
  return std::unique_ptr<Source>(
      std::make_unique<Layout>(directory, std::move(fd), std::move(*index), options));
}

}  // namespace image
