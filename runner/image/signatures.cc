// SPDX-License-Identifier: Apache-2.0
#include "image/signatures.h"

#include <algorithm>
#include <set>
#include <utility>

namespace image {
namespace {

constexpr std::string_view kBundleType = "application/vnd.dev.sigstore.bundle";
constexpr std::string_view kSimpleSigningType = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kEnvelopeType = "application/vnd.dsse.envelope.v1+json";

sigstore::LegacySignature LegacyOf(const Descriptor& layer, std::string payload) {
  sigstore::LegacySignature signature;
  signature.payload = std::move(payload);
  signature.signature = layer.Annotation("dev.cosignproject.cosign/signature");
  signature.certificate = layer.Annotation("dev.sigstore.cosign/certificate");
  signature.chain = layer.Annotation("dev.sigstore.cosign/chain");
  signature.bundle = layer.Annotation("dev.sigstore.cosign/bundle");
  signature.timestamp = layer.Annotation("dev.sigstore.cosign/rfc3161timestamp");
  return signature;
}

// Those that are likely signatures come first, so that a crowd of other things does not hide them.
int Likelihood(const Descriptor& referrer) {
  const std::string& type = referrer.artifact_type;
  if (type.starts_with(kBundleType) || type.starts_with("application/vnd.dev.cosign.")) return 0;
  return type.empty() || type.starts_with("application/vnd.oci.empty.") ? 1 : 2;
}

class Finder {
 public:
  Finder(Source& source, const std::string& digest, bool attestations, Deadline deadline)
      : source_(source), digest_(digest), attestations_(attestations), deadline_(deadline) {}

  void LookAtTag(const char* suffix) {
    const std::string tag = "sha256-" + digest_.substr(7) + suffix;
    Result<Document> document = source_.FetchManifest(tag, deadline_);
    if (!document.ok() && document.error().code == Code::kNotFound) return;
    TakeManifest("tag " + tag, std::move(document), false);
  }

  void LookAtReferrers() {
    Result<std::vector<Descriptor>> listed = source_.FetchReferrers(digest_, deadline_);
    if (!listed.ok()) return Fail("referrers", listed.error());
    std::vector<Descriptor> referrers = std::move(listed).value();
    std::stable_sort(
        referrers.begin(), referrers.end(),
        [](const Descriptor& a, const Descriptor& b) { return Likelihood(a) < Likelihood(b); });
    std::set<std::string> seen;
    for (const Descriptor& referrer : referrers) {
      if (!seen.insert(referrer.digest).second) continue;
      if (seen.size() > kCandidatesMax) {
        lookup_.failures.push_back("referrers: only " + std::to_string(kCandidatesMax) + " of " +
                                   std::to_string(referrers.size()) + " were checked");
        return;
      }
      Result<Document> document = source_.FetchManifest(referrer.digest, deadline_);
      if (!document.ok() && document.error().code == Code::kNotFound) continue;
      TakeManifest("referrer " + referrer.digest, std::move(document), true);
    }
  }

  Lookup Take() { return std::move(lookup_); }

 private:
  void Fail(const std::string& where, const Error& error) {
    size_t name = where.find("sha256");  // The start of a tag or a digest.
    name = name == std::string::npos ? 0 : name;
    lookup_.failures.push_back(About(where.substr(0, name), where.substr(name), error).what);
  }

  void TakeManifest(const std::string& where, Result<Document> document, bool referrer) {
    if (!document.ok()) return Fail(where, document.error());
    Result<std::variant<Index, Manifest>> parsed =
        ParseManifest(document.value().bytes, document.value().media_type);
    if (!parsed.ok()) return Fail(where, parsed.error());
    const Manifest* manifest = std::get_if<Manifest>(&parsed.value());
    if (manifest == nullptr) {
      if (!referrer) lookup_.failures.push_back(where + ": an index, not a manifest");
      return;
    }
    if (!manifest->subject.empty() && manifest->subject != digest_) {
      lookup_.failures.push_back(where + ": it refers to " + manifest->subject);
      return;
    }
    for (size_t at = 0; at < manifest->layers.size(); ++at) {
      TakeLayer(where + ", layer " + std::to_string(at), manifest->layers[at]);
    }
  }

  void TakeLayer(const std::string& where, const Descriptor& layer) {
    const bool bundle = layer.media_type.starts_with(kBundleType);
    const bool legacy = layer.media_type == kSimpleSigningType ||
                        (attestations_ && layer.media_type == kEnvelopeType);
    if (!bundle && !legacy) return;
    if (lookup_.candidates.size() == kCandidatesMax) {
      if (!full_) {
        lookup_.failures.push_back(where + ": more than " + std::to_string(kCandidatesMax) +
                                   " signatures; the others were not checked");
      }
      full_ = true;
      return;
    }
    Result<std::string> bytes = source_.FetchBlob(layer, bytes_left_, deadline_);
    if (!bytes.ok()) return Fail(where, bytes.error());
    bytes_left_ -= bytes.value().size();
    if (bundle) {
      lookup_.candidates.push_back({where, std::move(bytes).value()});
    } else {
      lookup_.candidates.push_back({where, LegacyOf(layer, std::move(bytes).value())});
    }
  }

  Source& source_;
  const std::string& digest_;
  const bool attestations_;
  const Deadline deadline_;
  Lookup lookup_;
  bool full_ = false;
  size_t bytes_left_ = kSignatureBytesMax;
};

}  // namespace

Lookup FindSignatures(Source& source, const std::string& digest, bool attestations,
                      Deadline deadline) {
  if (!IsDigest(digest)) return {{}, {"not a digest: nothing can have signed it"}};
  Finder finder(source, digest, attestations, deadline);
  finder.LookAtTag(".sig");
  if (attestations) finder.LookAtTag(".att");
  finder.LookAtReferrers();
  return finder.Take();
}

}  // namespace image
