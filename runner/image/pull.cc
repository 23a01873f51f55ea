// SPDX-License-Identifier: Apache-2.0
#include "image/pull.h"

#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "image/open_source.h"

namespace image {
namespace {

// A manifest and a configuration, as text in JSON.
constexpr size_t kVerdictBytesMax = 4 * (kManifestBytesMax + kConfigBytesMax);

std::string VerdictPath(const PullRequest& request, const std::string& digest) {
  const Platform& platform = request.verify.platform;
  std::string question = request.verify.reference.Name() + "\n" + digest + "\n" + platform.os +
                         "/" + platform.architecture + "/" + platform.variant + "\n" +
                         request.verify.trust->fingerprint;
  return request.store + "/verdicts/" + codec::Sha256Hex(question);
}

// Best effort: without it the next run asks again.
void Remember(const PullRequest& request, const VerifiedImage& image) {
  codec::Json json;
  json.Set("digest", image.digest);
  json.Set("manifest_digest", image.manifest_digest);
  json.Set("signed_digest", image.signed_digest);
  json.Set("where", image.where);
  json.Set("signer", image.signer);
  json.Set("issuer", image.issuer);
  json.Set("predicate_type", image.predicate_type);
  codec::Json indices = codec::Json::EmptyArray();
  for (int64_t index : image.log_indices) indices.Push(index);
  json.Set("log_indices", std::move(indices));
  json.Set("manifest", image.manifest_bytes);
  json.Set("config", image.config_bytes);
  std::string path = VerdictPath(request, image.digest);
  std::string draft = path + "." + std::to_string(::getpid());
  if (!sys::MakeDirectories(request.store + "/verdicts", 0700).ok()) return;
  bool written = sys::WriteFile(draft, codec::RenderJsonLine(json), 0600).ok() &&
                 ::rename(draft.c_str(), path.c_str()) == 0;
  if (!written) (void)::unlink(draft.c_str());
}

// The documents have to have the digests that were signed, whatever the file says.
std::optional<VerifiedImage> Recall(const PullRequest& request, const std::string& digest) {
  Result<std::string> text = sys::ReadFile(VerdictPath(request, digest), kVerdictBytesMax);
  if (!text.ok()) return std::nullopt;
  Result<codec::Json> json = codec::ParseJson(text.value(), {.bytes_max = kVerdictBytesMax});
  if (!json.ok()) return std::nullopt;
  const codec::Json& object = json.value();
  VerifiedImage image;
  image.reference = request.verify.reference;
  image.digest = object.StringAt("digest");
  image.manifest_digest = object.StringAt("manifest_digest");
  image.signed_digest = object.StringAt("signed_digest");
  image.where = object.StringAt("where");
  image.signer = object.StringAt("signer");
  image.issuer = object.StringAt("issuer");
  image.predicate_type = object.StringAt("predicate_type");
  image.manifest_bytes = object.StringAt("manifest");
  image.config_bytes = object.StringAt("config");
  const codec::Json* indices = object.Find("log_indices");
  if (indices != nullptr && indices->array() != nullptr) {
    for (const codec::Json& index : *indices->array()) {
      image.log_indices.push_back(index.integer().value_or(0));
    }
  }
  if (image.digest != digest || DigestOf(image.manifest_bytes) != image.manifest_digest) {
    return std::nullopt;
  }
  Result<std::variant<Index, Manifest>> manifest = ParseManifest(image.manifest_bytes, "");
  if (!manifest.ok() || !std::holds_alternative<Manifest>(manifest.value())) return std::nullopt;
  image.manifest = std::get<Manifest>(std::move(manifest).value());
  Result<ImageConfig> config = ParseImageConfig(image.config_bytes);
  if (!config.ok() || DigestOf(image.config_bytes) != image.manifest.config.digest) {
    return std::nullopt;
  }
  image.config = std::move(config).value();
  return image;
}

// Ends a transfer when its time has come. A server that says nothing at all is given up on by the
// source itself.
class CancellableSource : public Source {
 public:
  CancellableSource(std::unique_ptr<Source> source, std::function<bool()> cancelled)
      : source_(std::move(source)), cancelled_(std::move(cancelled)) {}

  Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline deadline) override {
    TRY(Check());
    return source_->FetchManifest(tag_or_digest, deadline);
  }
  Result<std::vector<Descriptor>> FetchReferrers(const std::string& digest,
                                                 Deadline deadline) override {
    TRY(Check());
    return source_->FetchReferrers(digest, deadline);
  }
  Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                Deadline deadline) override {
    TRY(Check());
    return source_->FetchBlob(blob, bytes_max, deadline);
  }
  Status StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart& restart,
                    Deadline deadline) override {
    BlobSink checked = [&](std::string_view bytes) -> Status {
      TRY(Check());
      return sink(bytes);
    };
    return source_->StreamBlob(blob, checked, restart, deadline);
  }

 private:
  Status Check() const {
    if (cancelled_ && cancelled_()) return Error{Code::kTemporary, "interrupted"};
    return Ok();
  }

  std::unique_ptr<Source> source_;
  std::function<bool()> cancelled_;
};

// Returns the digest that a tag leads to now; a digest is itself.
Result<std::string> ResolveDigest(Source& source, const Reference& reference, Deadline deadline) {
  if (!reference.digest.empty()) return reference.digest;
  Document top = TRY(source.FetchManifest(reference.tag, deadline));
  return top.digest;
}

Result<VerifiedImage> Resolve(const PullRequest& request, Source& source, Deadline deadline) {
  PullRequest pinned = request;
  // No registry is contacted about an image that no rule could accept.
  bool anybody = !request.verify.trust->Matching(request.verify.reference).empty();
  if (anybody) {
    pinned.verify.reference.digest = TRY(ResolveDigest(source, request.verify.reference, deadline));
  }
  std::optional<VerifiedImage> known = Recall(pinned, pinned.verify.reference.digest);
  if (known) {
    known->reference = request.verify.reference;
    return *std::move(known);
  }
  SourceOpener open = [&](const Reference& reference) {
    return OpenSource(reference, request.source);
  };
  ImageVerdict verdict = TRY(VerifyImage(source, open, pinned.verify, deadline));
  if (const auto* refusal = std::get_if<ImageRefusal>(&verdict)) return ToError(*refusal);
  VerifiedImage image = std::get<VerifiedImage>(std::move(verdict));
  Remember(pinned, image);
  image.reference = request.verify.reference;
  return image;
}

}  // namespace

Result<PulledImage> PullImage(const PullRequest& request, Deadline deadline) {
  SourceOptions options = request.source;
  if (request.progress != nullptr) {
    options.progress = [&](const BlobProgress& blob) { request.progress->Update(blob); };
  }
  std::unique_ptr<Source> opened = TRY(OpenSource(request.verify.reference, options));
  CancellableSource source(std::move(opened), request.cancelled);
  Store store = TRY(Store::Open(request.store));
  PulledImage pulled;
  pulled.image = TRY(Resolve(request, source, deadline));
  if (request.progress != nullptr) request.progress->Expect(pulled.image.manifest.layers);
  pulled.unpacked = TRY(
      store.Unpack(source, pulled.image.manifest, pulled.image.config, request.limits, deadline));
  if (request.progress != nullptr) request.progress->Finish();
  return pulled;
}

Result<VerifiedImage> CheckImage(const PullRequest& request, Deadline deadline) {
  std::unique_ptr<Source> opened = TRY(OpenSource(request.verify.reference, request.source));
  CancellableSource source(std::move(opened), request.cancelled);
  return Resolve(request, source, deadline);
}

void ForgetVerdicts(const std::string& directory) {
  std::error_code ignored;  // Anything left is as good as it was.
  std::filesystem::remove_all(directory + "/verdicts", ignored);
}

}  // namespace image
