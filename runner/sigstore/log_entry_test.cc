// SPDX-License-Identifier: Apache-2.0
// Logs: trees, checkpoints, and what an entry must say. Whole signatures are in tests/sigstore.
#include "sigstore/log_entry.h"

#include <catch2/catch.hpp>

#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "sigstore/checkpoint.h"
#include "sigstore/log_body.h"
#include "sigstore/trust/merkle.h"
#include "sigstore/trust/sct.h"

namespace sigstore {
namespace {

// RFC 6962, 2.1, word for word: what the product is compared with.
std::string Node(const std::string& left, const std::string& right) {
  return Digest(Hash::kSha256, "\x01" + left + right);
}
size_t Split(size_t count) {
  size_t half = 1;
  while (half * 2 < count) half *= 2;
  return half;
}
std::string TreeHash(const std::vector<std::string>& leaves) {
  if (leaves.size() == 1) return leaves[0];
  auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(Split(leaves.size()));
  return Node(TreeHash({leaves.begin(), middle}), TreeHash({middle, leaves.end()}));
}
std::vector<std::string> AuditPath(size_t index, const std::vector<std::string>& leaves) {
  if (leaves.size() == 1) return {};
  size_t half = Split(leaves.size());
  auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(half);
  std::vector<std::string> left(leaves.begin(), middle);
  std::vector<std::string> right(middle, leaves.end());
  std::vector<std::string> path =
      index < half ? AuditPath(index, left) : AuditPath(index - half, right);
  path.push_back(TreeHash(index < half ? right : left));
  return path;
}

TEST_CASE("every entry of every small tree is proved by its path, and by nothing else") {
  for (size_t size = 1; size <= 20; ++size) {
    std::vector<std::string> leaves;
    for (size_t i = 0; i < size; ++i) leaves.push_back(LeafHash(std::to_string(i)));
    std::string root = TreeHash(leaves);
    for (size_t index = 0; index < size; ++index) {
      std::vector<std::string> path = AuditPath(index, leaves);
      CHECK(ProvesInclusion(leaves[index], index, size, path, root));
      CHECK_FALSE(ProvesInclusion(LeafHash("other"), index, size, path, root));
      CHECK_FALSE(ProvesInclusion(leaves[index], index, size, path, leaves[index] + "x"));
      CHECK_FALSE(ProvesInclusion(leaves[index], index + size, size, path, root));
      if (size > 1) CHECK_FALSE(ProvesInclusion(leaves[index], index ^ 1, size, path, root));
      std::vector<std::string> longer = path;
      longer.push_back(root);
      CHECK_FALSE(ProvesInclusion(leaves[index], index, size, longer, root));
      if (path.empty()) continue;
      std::vector<std::string> shorter(path.begin(), path.end() - 1);
      CHECK_FALSE(ProvesInclusion(leaves[index], index, size, shorter, root));
      path[0][0] = static_cast<char>(path[0][0] ^ 1);
      CHECK_FALSE(ProvesInclusion(leaves[index], index, size, path, root));
    }
  }
}

TEST_CASE("trees of any size are walked without overflow") {
  std::string hash(32, 'h');
  uint64_t most = UINT64_MAX;
  CHECK_FALSE(ProvesInclusion(hash, 0, 0, {}, hash));
  CHECK_FALSE(ProvesInclusion(hash, most, most, {}, hash));
  CHECK_FALSE(ProvesInclusion(hash, 0, most, {}, hash));
  CHECK_FALSE(ProvesInclusion(hash, most - 1, most, {hash, hash}, hash));
  // The hash of a node is not that of a leaf: an inner node cannot be shown as an entry.
  CHECK(LeafHash(hash + hash) != Node(hash, hash));
}

const std::string kRootLine = codec::EncodeBase64(std::string(32, 'r'));
const std::string kSignature = codec::EncodeBase64("hintsignature");
const std::string kText = "log.example.com\n12\n" + kRootLine + "\n";

TEST_CASE("a checkpoint is its text, and lines of signatures behind an empty line") {
  std::string envelope = kText + "extension\n\n\xE2\x80\x94 log.example.com " + kSignature + "\n" +
                         "\xE2\x80\x94 witness " + kSignature + "\n";
  Checked<Checkpoint> parsed = ParseCheckpoint(envelope);
  REQUIRE(parsed.ok());
  const Checkpoint& checkpoint = parsed.value();
  CHECK(checkpoint.text == kText + "extension\n");
  CHECK(checkpoint.origin == "log.example.com");
  CHECK(checkpoint.size == 12);
  CHECK(checkpoint.root == std::string(32, 'r'));
  REQUIRE(checkpoint.signatures.size() == 2);
  CHECK(checkpoint.signatures[0].name == "log.example.com");
  CHECK(checkpoint.signatures[0].hint == "hint");
  CHECK(checkpoint.signatures[0].bytes == "signature");
}

TEST_CASE("a checkpoint of another form is refused") {
  std::string line = "\xE2\x80\x94 log.example.com " + kSignature + "\n";
  std::string bad = GENERATE_COPY(
      std::string(), std::string("\n\n"), kText, kText + "\n", kText + line,
      kText + "\n" + line.substr(0, line.size() - 1),
      kText + "\n- log.example.com " + kSignature + "\n",
      kText + "\n\xE2\x80\x94 " + kSignature + "\n", kText + "\n\xE2\x80\x94 log.example.com !\n",
      kText + "\n\xE2\x80\x94 log.example.com aGludA==\n", kText + "\n" + line + "\n",
      "\n12\n" + kRootLine + "\n\n" + line, "a\n-1\n" + kRootLine + "\n\n" + line,
      "a\n012\n" + kRootLine + "\n\n" + line, "a\n12x\n" + kRootLine + "\n\n" + line,
      "a\n18446744073709551616\n" + kRootLine + "\n\n" + line, "a\n" + kRootLine + "\n\n" + line,
      "a\n12\nAAAA\n\n" + line, std::string(70000, 'a') + kText + "\n" + line);
  Checked<Checkpoint> parsed = ParseCheckpoint(bad);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().reason == Reason::kCheckpointFormat);
}

std::string SctBytes(const std::string& extensions = {}) {
  std::string bytes("\0", 1);
  bytes += std::string(32, 'l');
  bytes += std::string("\0\0\0\0\0\0\x03\xe8", 8);
  bytes += std::string("\0", 1) + static_cast<char>(extensions.size()) + extensions;
  return bytes + std::string("\x04\x03\0\x02", 4) + "sg";
}

std::string Prefixed(const std::string& bytes) {
  return std::string(1, static_cast<char>(bytes.size() >> 8)) +
         static_cast<char>(bytes.size() & 0xff) + bytes;
}

TEST_CASE("a list of certificate logs' promises is read to its last byte") {
  std::string two = Prefixed(SctBytes()) + Prefixed(SctBytes("ext"));
  std::optional<std::vector<Sct>> list = ParseSctList(Prefixed(two));
  REQUIRE(list);
  REQUIRE(list->size() == 2);
  CHECK(list->at(1).log_id == std::string(32, 'l'));
  CHECK(list->at(1).milliseconds == 1000);
  CHECK(list->at(1).extensions == "ext");
  CHECK(list->at(1).hash == 4);
  CHECK(list->at(1).algorithm == 3);
  CHECK(list->at(1).signature == "sg");
  std::string of_the_future = SctBytes();
  of_the_future[0] = 1;
  CHECK(ParseSctList(Prefixed(Prefixed(of_the_future)))->empty());
  CHECK_FALSE(ParseSctList(Prefixed(two) + "x"));
  CHECK_FALSE(ParseSctList(Prefixed(two + "x")));
  CHECK_FALSE(ParseSctList(Prefixed(Prefixed(SctBytes() + "x"))));
  for (size_t size = 0; size < Prefixed(two).size(); ++size) {
    CHECK_FALSE(ParseSctList(Prefixed(two).substr(0, size)));
  }
}

// A hashedrekord of a message, with any of its parts another.
std::string Body(const std::string& digest, const std::string& signature, const std::string& pem) {
  return R"({"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":)"
         R"("sha256","value":")" +
         digest + R"("}},"signature":{"content":")" + codec::EncodeBase64(signature) +
         R"(","publicKey":{"content":")" + codec::EncodeBase64(pem) + R"("}}}})";
}

TEST_CASE("a log entry counts only for the very digest, signature and key") {
  SignedContent content;
  content.message = "message";
  content.signature = "signature";
  content.verifier.pem = {"PUBLIC KEY", "key"};
  std::string digest = codec::EncodeHex(Digest(Hash::kSha256, "message"));
  std::string pem = "-----BEGIN PUBLIC KEY-----\na2V5\n-----END PUBLIC KEY-----\n";
  auto reason = [&](const std::string& body, std::string_view version = "0.0.1") {
    Check check = CheckBodyV1(body, "hashedrekord", version, content);
    return check.ok() ? std::string("ok") : Render(check.error()).substr(0, 24);
  };
  CHECK(reason(Body(digest, "signature", pem)) == "ok");
  CHECK(reason(Body(digest, "another", pem)) == "tlog-mismatch: signature");
  CHECK(reason(Body("ab", "signature", pem)) == "tlog-mismatch: digest is");
  CHECK(reason(Body(digest, "signature", "")) == "missing-field: the log e");
  std::string other_key = "-----BEGIN PUBLIC KEY-----\na2V6\n-----END PUBLIC KEY-----\n";
  CHECK(reason(Body(digest, "signature", other_key)) == "tlog-mismatch: key is no");
  // The same bytes under another label are something else.
  std::string certificate = "-----BEGIN CERTIFICATE-----\na2V5\n-----END CERTIFICATE-----\n";
  CHECK(reason(Body(digest, "signature", certificate)) == "tlog-mismatch: key is no");
  CHECK(reason(Body(digest, "signature", pem), "0.0.2").starts_with("tlog-kind: "));
  CHECK(reason("{}").starts_with("missing-field: "));
  CHECK(reason("[").starts_with("parse: "));
}

}  // namespace
}  // namespace sigstore
