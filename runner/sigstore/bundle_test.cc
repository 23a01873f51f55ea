// SPDX-License-Identifier: Apache-2.0
// Documents: bundles, statements, legacy payloads, trusted roots. Their signatures are in
// tests/sigstore.
#include "sigstore/bundle.h"

#include <catch2/catch.hpp>

#include "sigstore/simple_signing.h"
#include "sigstore/statement.h"
#include "sigstore/trust/der.h"
#include "sigstore/trust/path.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {
namespace {

template <typename T>
std::string Said(const Checked<T>& checked) {
  return checked.ok() ? "ok" : std::string(Render(checked.error().reason));
}

std::string Replaced(std::string text, std::string_view old, std::string_view with) {
  size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), with);
}

const std::string kBundle = R"({"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",
"verificationMaterial":{"publicKey":{"hint":"h"},"tlogEntries":[{"logIndex":"7","logId":{"keyId":
"a2V5"},"kindVersion":{"kind":"dsse","version":"0.0.1"},"integratedTime":"5","inclusionPromise":null,
"inclusionProof":{"logIndex":3,"rootHash":"cm9vdA==","treeSize":"4","hashes":["aGFz\naA=="],
"checkpoint":{"envelope":"note"}},"canonicalizedBody":"Ym9keQ=="}]},
"dsseEnvelope":{"payload":"e30=","payloadType":"t","signatures":[{"sig":"c2ln","keyid":""}]}})";

TEST_CASE("a bundle is read: numbers in strings, null for nothing, line ends in base64") {
  Checked<Bundle> parsed = ParseBundle(kBundle);
  REQUIRE(Said(parsed) == "ok");
  const Bundle& bundle = parsed.value();
  CHECK(bundle.version == 3);
  CHECK(bundle.leaf == nullptr);
  CHECK(bundle.payload_type == "t");
  CHECK(bundle.content.signature == "sig");
  CHECK(bundle.content.message == "DSSEv1 1 t 2 {}");
  REQUIRE(bundle.entries.size() == 1);
  const LogEntry& entry = bundle.entries[0];
  CHECK(entry.index == 7);
  CHECK(entry.integrated_time == 5);
  CHECK(entry.promise.empty());
  REQUIRE(entry.proof);
  CHECK(entry.proof->index == 3);
  CHECK(entry.proof->path == std::vector<std::string>{"hash"});
}

TEST_CASE("a bundle with one thing wrong is refused for that thing") {
  auto [old, with, reason] = GENERATE(table<std::string, std::string, std::string>({
      {"{\"mediaType\"", "[\"mediaType\"", "parse"},
      {"bundle.v0.3+json", "bundle.v0.4+json", "media-type"},
      {"\"verificationMaterial\"", "\"verification_material\"", "unknown-field"},
      {"\"hint\":\"h\"", "\"hint\":\"h\",\"extra\":1", "unknown-field"},
      {"\"hint\":\"h\"", "\"hint\":\"h\",\"hint\":\"h\"", "duplicate-key"},
      {"\"publicKey\":{\"hint\":\"h\"},", "", "material"},
      {"\"publicKey\":{\"hint\":\"h\"}",
       "\"publicKey\":{\"hint\":\"h\"},\"certificate\":{\"rawBytes\":\"AAAA\"}", "material"},
      {"\"publicKey\":{\"hint\":\"h\"}", "\"x509CertificateChain\":{\"certificates\":[]}",
       "material"},
      {"\"publicKey\":{\"hint\":\"h\"}", "\"certificate\":{\"rawBytes\":\"AAAA\"}",
       "bad-certificate"},
      {"\"logIndex\":\"7\"", "\"logIndex\":\"-7\"", "tlog-index"},
      {"\"logIndex\":\"7\"", "\"logIndex\":\"7.0\"", "parse"},
      {"\"logIndex\":\"7\"", "\"logIndex\":\"9223372036854775808\"", "parse"},
      {"\"logIndex\":\"7\"", "\"logIndex\":true", "parse"},
      {"\"a2V5\"", "\"a2V5=\"", "bad-base64"},
      {"\"a2V5\"", "null", "missing-field"},
      {"\"checkpoint\":{\"envelope\":\"note\"}", "\"checkpoint\":null", "missing-field"},
      {"\"canonicalizedBody\":\"Ym9keQ==\"", "\"canonicalizedBody\":\"\"", "missing-field"},
      {"\"signatures\":[{\"sig\":\"c2ln\",\"keyid\":\"\"}]", "\"signatures\":[]", "no-signature"},
      {"[{\"sig\":\"c2ln\"", "[{\"sig\":\"c2ln\"},{\"sig\":\"c2ln\"", "no-signature"},
      {"\"sig\":\"c2ln\"", "\"sig\":\"c2l\"", "bad-base64"},
      {"\"dsseEnvelope\":", "\"messageSignature\":{\"signature\":\"c2ln\"},\"dsseEnvelope\":",
       "no-signature"},
  }));
  CAPTURE(old, with);
  CHECK(Said(ParseBundle(Replaced(kBundle, old, with))) == reason);
}

TEST_CASE("the same log entry twice is refused, and more than 32 are not looked at") {
  size_t begin = kBundle.find("{\"logIndex\":\"7\"");
  std::string entry = kBundle.substr(begin, kBundle.find("]},\n\"dsse") - begin);
  CHECK(Said(ParseBundle(Replaced(kBundle, entry, entry + "," + entry))) == "tlog-duplicate");
  std::string many = entry;
  for (int i = 100; i < 132; ++i) {
    many += "," + Replaced(entry, "\"7\"", "\"" + std::to_string(i) + "\"");
  }
  CHECK(Said(ParseBundle(Replaced(kBundle, entry, many))) == "too-many");
}

TEST_CASE("a bundle of v0.1 needs a log's promise") {
  std::string old = Replaced(kBundle, "bundle.v0.3+json", "bundle+json;version=0.1");
  CHECK(Said(ParseBundle(old)) == "missing-field");
  CHECK(Said(ParseBundle(Replaced(old, "\"inclusionPromise\":null",
                                  R"("inclusionPromise":{"signedEntryTimestamp":"AAAA"})"))) ==
        "ok");
}

const std::string kDigest(64, 'a');
const std::string kStatement =
    R"({"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"sha512":"00"}},)"
    R"({"digest":{"sha256":")" +
    kDigest + R"("}}],"predicateType":"https://sigstore.dev/cosign/sign/v1"})";

std::string Judged(const std::string& statement, const VerifyOptions& options = {},
                   std::string_view type = "application/vnd.in-toto+json") {
  return Said(CheckStatement(type, statement, kDigest, options));
}

TEST_CASE("a statement counts if it is one, about this artifact, and of a type that counts") {
  CHECK(Judged(kStatement) == "ok");
  CHECK(Judged(Replaced(kStatement, "Statement/v1", "Statement/v0.1")) == "ok");
  CHECK(Judged(kStatement, {}, "application/json") == "payload-type");
  CHECK(Judged(Replaced(kStatement, "Statement/v1", "Statement/v2")) == "statement");
  CHECK(Judged(Replaced(kStatement, "_type", "type")) == "statement");
  CHECK(Judged(Replaced(kStatement, "\"subject\"", "\"subjects\"")) == "statement");
  CHECK(Judged(Replaced(kStatement, kDigest, std::string(64, 'A'))) == "subject");
  CHECK(Judged(Replaced(kStatement, "sha256", "sha512")) == "subject");
  CHECK(Judged(Replaced(kStatement, "{\"_type\"", "{\"_type\":\"\",\"_type\"")) == "duplicate-key");
  CHECK(Judged("[]") == "statement");
  CHECK(Judged("") == "parse");
}

TEST_CASE("an attestation is a signature only for those who say so") {
  std::string provenance = "https://slsa.dev/provenance/v1";
  std::string statement = Replaced(kStatement, kCosignSign, provenance);
  VerifyOptions named;
  named.predicate_types = {provenance};
  VerifyOptions any;
  any.any_predicate = true;
  CHECK(Judged(statement) == "predicate-type");
  CHECK(Judged(statement, named) == "ok");
  CHECK(Judged(kStatement, named) == "ok");
  CHECK(Judged(statement, any) == "ok");
}

TEST_CASE("cosign's older payload is about one manifest") {
  std::string payload = R"({"critical":{"identity":{"docker-reference":"anything"},"image":)"
                        R"({"docker-manifest-digest":"sha256:)" +
                        kDigest +
                        R"("},"type":"cosign container image signature"},"optional":null})";
  auto said = [](const std::string& text) { return Said(CheckSimpleSigning(text, kDigest)); };
  CHECK(said(payload) == "ok");
  CHECK(said(Replaced(payload, kDigest, std::string(64, 'b'))) == "digest");
  CHECK(said(Replaced(payload, "docker-manifest-digest", "Docker-Manifest-Digest")) == "digest");
  CHECK(said(Replaced(payload, "cosign container", "atomic container")) == "payload");
  CHECK(said("{}") == "payload");
  CHECK(said(Replaced(payload, "\"optional\":null", "\"critical\":{}")) == "duplicate-key");
}

TEST_CASE("a legacy log entry is of Rekor v1 and names its log in hexadecimal") {
  std::string entry = R"({"SignedEntryTimestamp":"AAAA","Payload":{"body":)"
                      R"("eyJraW5kIjoiaGFzaGVkcmVrb3JkIiwiYXBpVmVyc2lvbiI6IjAuMC4xIn0=",)"
                      R"("integratedTime":5,"logIndex":6,"logID":")" +
                      kDigest + R"("}})";
  Checked<LogEntry> parsed = ParseLegacyEntry(entry);
  REQUIRE(Said(parsed) == "ok");
  CHECK(parsed.value().kind == "hashedrekord");
  CHECK(parsed.value().key_id == std::string(32, '\xaa'));
  CHECK(Said(ParseLegacyEntry(Replaced(entry, kDigest, "ab"))) == "parse");
  CHECK(Said(ParseLegacyEntry(Replaced(entry, ":6", ":-6"))) == "tlog-index");
  CHECK(Said(ParseLegacyEntry(Replaced(entry, "IjAuMC4xIn0=", "IjAuMC4yIn0="))) == "tlog-kind");
  CHECK(Said(ParseLegacyTimestamp(R"({"SignedRFC3161Timestamp":"AAAA"})")) == "ok");
  CHECK(Said(ParseLegacyTimestamp("{}")) == "missing-field");
}

const std::string kRoot =
    R"({"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1",
"tlogs":[{"baseUrl":"https://log.example.com:443/x","hashAlgorithm":"SHA2_256","publicKey":{"rawBytes":
"a2V5","keyDetails":"PKIX_ED25519","validFor":{"start":"2025-01-01T00:00:00.5Z","end":null}},"logId":
{"keyId":"aWQ="}}],"certificateAuthorities":[{"uri":"https://ca","certChain":{"certificates":
[{"rawBytes":"MAA="}]},"validFor":{"start":"2025-01-01T00:00:00Z","end":"2025-01-01T00:00:00Z"}}]})";

std::string OneLine(std::string text) {
  std::erase(text, '\n');
  return text;
}

TEST_CASE("a trusted root says who is believed, and when") {
  Result<TrustedRoot> root = ParseTrustedRoot(kRoot);
  REQUIRE(root.ok());
  REQUIRE(root.value().instances.size() == 1);
  const TrustedInstance& instance = root.value().instances[0];
  REQUIRE(instance.logs.size() == 1);
  CHECK(instance.logs[0].host == "log.example.com");
  CHECK(instance.logs[0].key_id == "id");
  CHECK(instance.logs[0].valid_for.Contains({1735689600, 500000000}));
  CHECK_FALSE(instance.logs[0].valid_for.Contains({1735689600, 499999999}));
  CHECK(instance.certificate_authorities[0].valid_for->Contains({1735689600}));
  CHECK_FALSE(instance.certificate_authorities[0].valid_for->Contains({1735689600, 1}));
}

TEST_CASE("several trusted roots are one a line") {
  std::string line = OneLine(kRoot);
  CHECK(ParseTrustedRoot(line + "\n\n" + line + "\n").value().instances.size() == 2);
  CHECK_FALSE(ParseTrustedRoot(line + "\n{").ok());
  CHECK_FALSE(ParseTrustedRoot("").ok());
  CHECK_FALSE(ParseTrustedRoot("\n").ok());
}

TEST_CASE("a malformed trusted root trusts nobody") {
  auto [old, with, code] = GENERATE(table<std::string, std::string, std::string>({
      {"trustedroot+json;version=0.1", "trustedroot+json;version=9", "trust-root: "},
      {"\"start\":\"2025-01-01T00:00:00.5Z\",", "", "trust-root-validity: "},
      {"2025-01-01T00:00:00.5Z", "2025-02-30T00:00:00Z", "trust-root-validity: "},
      {"\"end\":\"2025-01-01T00:00:00Z\"", "\"end\":\"2024-01-01T00:00:00Z\"",
       "trust-root-validity: "},
      {"\"SHA2_256\"", "\"SHA2_512\"", "trust-root: "},
      {"[{\"rawBytes\":\"MAA=\"}]", "[]", "trust-root: "},
      {"MAA=", "MAAA", "trust-root: "},
      {"\"keyId\":\"aWQ=\"", "\"keyId\":\"\"", "missing-field: "},
      {"\"uri\"", "\"url\"", "unknown-field: "},
      {"\"tlogs\"", "\"tlogs\":[],\"tlogs\"", "duplicate-key: "},
  }));
  CAPTURE(old, with);
  Result<TrustedRoot> root = ParseTrustedRoot(OneLine(Replaced(kRoot, old, with)));
  REQUIRE_FALSE(root.ok());
  CHECK(root.error().code == Code::kInvalid);
  CHECK(root.error().what.starts_with(code));
}

TEST_CASE("the built-in trusted root is whole") {
  const TrustedRoot& root = EmbeddedTrustedRoot();
  REQUIRE(root.instances.size() == 1);
  CHECK(root.instances[0].logs.size() >= 2);
  CHECK(root.instances[0].certificate_logs.size() >= 2);
  CHECK(root.instances[0].timestamp_authorities.size() >= 1);
}

bool SignedBy(const CertificateOwner& subject, const CertificateOwner& issuer) {
  return ::X509_verify(subject.get(), ::X509_get0_pubkey(issuer.get())) == 1;
}

TEST_CASE("whoever is in an authority that is built in is signed by the next above") {
  size_t links = 0;
  for (const auto& list : {EmbeddedTrustedRoot().instances[0].certificate_authorities,
                           EmbeddedTrustedRoot().instances[0].timestamp_authorities}) {
    for (const TrustedAuthority& trusted : list) {
      Chain chain = ReadAuthority(trusted).value().certificates;
      CHECK(trusted.proved);
      for (size_t i = 0; i + 1 < chain.size(); ++i, ++links) {
        CHECK(SignedBy(chain[i], chain[i + 1]));
        CHECK_FALSE(SignedBy(chain[i], chain[i]));
      }
    }
  }
  CHECK(links >= 2);
}

// An intermediate and its root.
const TrustedAuthority& PublicAuthority() {
  return EmbeddedTrustedRoot().instances[0].certificate_authorities.back();
}

// The path from an authority's lower certificate, as `leaf`, to its upper.
bool HasPath(const std::string& leaf, std::vector<std::string> certificates, bool proved) {
  TrustedAuthority trusted{"", std::move(certificates), std::nullopt, proved};
  CertificateOwner certificate = ParseCertificate(leaf);
  return BuildChain(certificate.get(), ReadAuthority(trusted).value(), NID_code_sign).ok();
}

TEST_CASE("a signature is taken for proved between an authority's own certificates only") {
  const std::vector<std::string> good = PublicAuthority().certificates;
  REQUIRE(good.size() == 2);
  std::string forged = good[0];
  forged.back() = static_cast<char>(forged.back() ^ 1);
  for (bool proved : {false, true}) {
    CHECK(HasPath(good[0], good, proved));
    CHECK_FALSE(HasPath(forged, good, proved));
    CHECK_FALSE(HasPath(forged, {good[1]}, proved));
    // This is its purpose: nothing of this is computed anew.
    CHECK(HasPath(forged, {forged, good[1]}, proved) == proved);
    CHECK_FALSE(HasPath(forged, {good[1], forged, good[1]}, false));
  }
}

TEST_CASE("an authority is asked for certificates that have a name of its own") {
  const TrustedAuthority& authority = PublicAuthority();
  CertificateOwner lower = ParseCertificate(authority.certificates[0]);
  const X509* leaf = lower.get();
  auto may = [&](std::vector<std::string> certificates) {
    return MayHaveIssued({"", std::move(certificates), std::nullopt, false}, leaf);
  };
  CHECK(may(authority.certificates));
  CHECK(may({authority.certificates[0]}));  // It is itself the anchor.
  CHECK(may({authority.certificates[1]}));
  CHECK_FALSE(may(EmbeddedTrustedRoot().instances[0].timestamp_authorities[0].certificates));
  CHECK(may({"not a certificate"}));  // Unknown.
}

TEST_CASE("elements of DER are taken one by one") {
  std::string two = Wrap(0x30, "one") + Wrap(0xa3, std::string(200, 'x'));
  std::string_view left = two;
  std::optional<Element> first = TakeElement(&left);
  REQUIRE(first);
  CHECK(first->tag == 0x30);
  CHECK(first->whole == "\x30\x03one");
  CHECK(first->content == "one");
  std::optional<Element> second = TakeElement(&left);
  REQUIRE(second);
  CHECK(second->whole.substr(0, 3) == "\xa3\x81\xc8");
  CHECK(second->content.size() == 200);
  CHECK(left.empty());
  CHECK_FALSE(TakeElement(&left));
  CHECK(Wrap(4, "") == std::string("\4\0", 2));
  CHECK(Wrap(4, std::string(70000, 'x')).substr(0, 5) == std::string("\4\x83\x01\x11\x70", 5));
}

TEST_CASE("lengths of DER that are not there, too long, or not the shortest are none") {
  const std::string much(0x81, 'x');
  for (const std::string& bytes :
       {std::string("\x30"), std::string("\x30\x02x"), "\x30\x80" + much, "\x30\x81\x01" + much,
        std::string("\x30\x82\0\x81", 4) + much, std::string("\x30\x84\0\0\0\x81", 6) + much,
        "\x1f\x01" + much}) {
    std::string_view left = bytes;
    CHECK_FALSE(TakeElement(&left));
    CHECK(left == bytes);
  }
  std::string good = "\x30\x81\x81" + much;
  std::string_view left = good;
  CHECK(TakeElement(&left));
}

}  // namespace
}  // namespace sigstore
