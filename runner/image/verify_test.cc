// SPDX-License-Identifier: Apache-2.0
#include "image/verify.h"

#include <catch2/catch.hpp>
#include <map>

#include "codec/data/digest.h"

namespace image {
namespace {

constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";

std::string Digest(const std::string& bytes) { return "sha256:" + codec::Sha256Hex(bytes); }

// A repository that is a table, and says which places were asked for.
class FakeSource : public Source {
 public:
  std::map<std::string, Document> manifests;
  std::map<std::string, std::string> blobs;
  std::vector<std::string> asked;
  std::string broken;  // References that begin so cannot be asked for.

  std::string AddBlob(const std::string& bytes) {
    blobs[Digest(bytes)] = bytes;
    return R"({"mediaType":"application/vnd.oci.image.config.v1+json","digest":")" + Digest(bytes) +
           R"(","size":)" + std::to_string(bytes.size()) + "}";
  }
  std::string AddManifest(const std::string& tag, const std::string& type,
                          const std::string& bytes) {
    manifests[Digest(bytes)] = manifests[tag] = {type, bytes, Digest(bytes)};
    return Digest(bytes);
  }
  // An image of one layer, for one architecture.
  std::string AddImage(const std::string& tag, const std::string& architecture) {
    std::string layer = Digest("a layer");
    std::string config =
        AddBlob(R"({"os":"linux","architecture":")" + architecture +
                R"(","config":{},"rootfs":{"type":"layers","diff_ids":[")" + layer + R"("]}})");
    return AddManifest(
        tag, kManifestType,
        R"({"schemaVersion":2,"config":)" + config +
            R"(,"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":")" +
            layer + R"(","size":7}]})");
  }

  Result<Document> FetchManifest(const std::string& reference, Deadline) override {
    asked.push_back(reference);
    if (!broken.empty() && reference.starts_with(broken)) {
      return Error{Code::kTemporary, "429 after 5 attempts"};
    }
    auto found = manifests.find(reference);
    if (found == manifests.end()) return Error{Code::kNotFound, "no such manifest"};
    return found->second;
  }
  Result<std::vector<Descriptor>> FetchReferrers(const std::string&, Deadline) override {
    return std::vector<Descriptor>();
  }
  Result<std::string> FetchBlob(const Descriptor& blob, size_t, Deadline) override {
    asked.push_back(blob.digest);
    return blobs.at(blob.digest);
  }
  Status StreamBlob(const Descriptor&, const BlobSink&, const BlobRestart&, Deadline) override {
    return Error{Code::kBug, "no layer is ever streamed here"};
  }
};

TrustPolicy PolicyFor(const std::string& repository) {
  TrustRule rule;
  rule.repository = repository;
  rule.pattern = codec::Glob::Parse(repository, '/').value();
  rule.options.signer = sigstore::KeyRule{"-----BEGIN PUBLIC KEY-----\n", false};
  rule.origin = "config.yml:3:7";
  TrustPolicy policy;
  policy.rules.push_back(std::move(rule));
  return policy;
}

Result<ImageVerdict> Verify(FakeSource& source, const std::string& reference,
                            const TrustPolicy& trust) {
  VerifyRequest request;
  request.reference = ParseReference(reference).value();
  request.trust = &trust;
  request.platform = {"linux", "amd64", ""};
  SourceOpener open = [](const Reference&) -> Result<std::unique_ptr<Source>> {
    return Error{Code::kTemporary, "nobody there"};
  };
  return VerifyImage(source, open, request, Deadline::Never());
}

ImageRefusal Refusal(FakeSource& source, const std::string& reference, const TrustPolicy& trust) {
  Result<ImageVerdict> verdict = Verify(source, reference, trust);
  REQUIRE(verdict.ok());
  REQUIRE(std::holds_alternative<ImageRefusal>(verdict.value()));
  return std::get<ImageRefusal>(std::move(verdict).value());
}

}  // namespace

TEST_CASE("What no rule is about is refused before anybody is asked") {
  FakeSource source;
  source.AddImage("v1", "amd64");
  ImageRefusal refusal = Refusal(source, "ghcr.io/o/agent:v1", PolicyFor("ghcr.io/p/*"));
  CHECK(refusal.kind == RefusalKind::kNoMatch);
  CHECK(refusal.hint.find("- repository: ghcr.io/o/agent\n") != std::string::npos);
  CHECK(source.asked.empty());
  CHECK(ToError(refusal).code == Code::kRefused);
}

TEST_CASE("An image without signatures is told from one that nobody can tell about") {
  FakeSource source;
  std::string digest = source.AddImage("v1", "amd64");
  ImageRefusal none = Refusal(source, "ghcr.io/o/agent:v1", PolicyFor("ghcr.io/o/*"));
  CHECK(none.kind == RefusalKind::kNoSignature);
  CHECK(none.digest == digest);
  CHECK(ToError(none).code == Code::kRefused);
  source.broken = "sha256-";
  ImageRefusal unknown = Refusal(source, "ghcr.io/o/agent:v1", PolicyFor("ghcr.io/o/*"));
  CHECK(unknown.kind == RefusalKind::kLookupFailed);
  CHECK(ToError(unknown).code == Code::kTemporary);
  CHECK(ToError(unknown).what.find("429") != std::string::npos);
  // No configuration was asked for either time.
  for (const std::string& asked : source.asked) CHECK_FALSE(source.blobs.contains(asked));
}

TEST_CASE("An index and the platform's manifest are both looked at, as the rule wants") {
  FakeSource source;
  std::string leaf = source.AddImage("amd64", "amd64");
  std::string size = std::to_string(source.manifests[leaf].bytes.size());
  std::string index = source.AddManifest(
      "v1", kIndexType,
      R"({"schemaVersion":2,"manifests":[{"mediaType":")" + std::string(kManifestType) +
          R"(","digest":")" + leaf + R"(","size":)" + size +
          R"(,"platform":{"os":"linux","architecture":"amd64"}}]})");
  auto looked_at = [&](SignTarget target) {
    TrustPolicy policy = PolicyFor("ghcr.io/o/*");
    policy.rules[0].target = target;
    source.asked.clear();
    CHECK(Refusal(source, "ghcr.io/o/agent:v1", policy).kind == RefusalKind::kNoSignature);
    std::string found;
    for (const std::string& asked : source.asked) {
      if (asked == "sha256-" + index.substr(7) + ".sig") found += "index ";
      if (asked == "sha256-" + leaf.substr(7) + ".sig") found += "manifest ";
    }
    return found;
  };
  CHECK(looked_at(SignTarget::kAny) == "index manifest ");
  CHECK(looked_at(SignTarget::kIndex) == "index ");
  CHECK(looked_at(SignTarget::kManifest) == "manifest ");
}

TEST_CASE("A repository of signatures that cannot be opened is a failed lookup") {
  FakeSource source;
  source.AddImage("v1", "amd64");
  TrustPolicy policy = PolicyFor("ghcr.io/o/*");
  policy.rules[0].signatures = {"ghcr.io/o/signatures"};
  ImageRefusal refusal = Refusal(source, "ghcr.io/o/agent:v1", policy);
  CHECK(refusal.kind == RefusalKind::kLookupFailed);
  CHECK(refusal.failures == std::vector<std::string>{"ghcr.io/o/signatures: nobody there"});
}

TEST_CASE("A bundle that was brought along is a candidate like any other") {
  FakeSource source;
  source.AddImage("v1", "amd64");
  TrustPolicy policy = PolicyFor("**");
  VerifyRequest request;
  request.reference = ParseReference("ghcr.io/o/agent:v1").value();
  request.trust = &policy;
  request.platform = {"linux", "amd64", ""};
  request.bundles = {"{}"};
  Result<ImageVerdict> verdict = VerifyImage(source, {}, request, Deadline::Never());
  REQUIRE(verdict.ok());
  const ImageRefusal& refusal = std::get<ImageRefusal>(verdict.value());
  CHECK(refusal.kind == RefusalKind::kCryptoInvalid);
  REQUIRE(refusal.rejected.size() == 1);
  CHECK(refusal.rejected[0].where == "bundle file 1");
  CHECK(refusal.rejected[0].rule == "config.yml:3:7");
  CHECK(ToError(refusal).what.find("\nbundle file 1, against config.yml:3:7: ") !=
        std::string::npos);
}

TEST_CASE("A wrong identity is shown with the lines that would accept it, and only a few are") {
  ImageRefusal refusal;
  refusal.kind = RefusalKind::kIdentityMismatch;
  for (int i = 0; i < 20; ++i) {
    refusal.rejected.push_back({"sha256:0",
                                "referrer",
                                "config.yml:3:7",
                                {sigstore::Reason::kIdentityMismatch, "another", "them", "there"}});
  }
  std::string what = ToError(refusal).what;
  CHECK(what.find("signed by them, issuer there") != std::string::npos);
  CHECK(what.find("and 12 more") != std::string::npos);
}

}  // namespace image
