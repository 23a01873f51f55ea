// SPDX-License-Identifier: Apache-2.0
#include "sigstore/checkpoint.h"

#include <charconv>
#include <optional>

#include "codec/text/base64.h"

namespace sigstore {
namespace {

constexpr size_t kEnvelopeBytesMax = size_t{64} << 10;
constexpr size_t kSignaturesMax = 64;
constexpr std::string_view kDash = "\xE2\x80\x94 ";  // U+2014 and a blank.
constexpr size_t kHintSize = 4;

Rejection BadCheckpoint(std::string_view what) {
  return {Reason::kCheckpointFormat, "the checkpoint " + std::string(what)};
}

// The next line, without its end; nullopt if no line end is left.
std::optional<std::string_view> TakeLine(std::string_view* text) {
  size_t end = text->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

// Decimal, as it would be written: no sign, no leading zero.
std::optional<uint64_t> ParseSize(std::string_view line) {
  uint64_t size = 0;
  auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  bool whole = error == std::errc() && rest == line.data() + line.size();
  if (!whole || (line.size() > 1 && line[0] == '0')) return std::nullopt;
  return size;
}

std::optional<Checkpoint::Signature> ParseSignature(std::string_view line) {
  if (!line.starts_with(kDash)) return std::nullopt;
  line.remove_prefix(kDash.size());
  size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
  std::optional<std::string> bytes = codec::DecodeBase64(line.substr(blank + 1));
  if (!bytes || bytes->size() <= kHintSize) return std::nullopt;
  return Checkpoint::Signature{std::string(line.substr(0, blank)), bytes->substr(0, kHintSize),
                               bytes->substr(kHintSize)};
}

Check ParseText(std::string_view text, Checkpoint* checkpoint) {
  std::optional<std::string_view> origin = TakeLine(&text);
  std::optional<std::string_view> size_line = TakeLine(&text);
  std::optional<std::string_view> root_line = TakeLine(&text);
  if (!origin || origin->empty() || !size_line || !root_line) {
    return BadCheckpoint("lacks its origin, size or root");
  }
  std::optional<uint64_t> size = ParseSize(*size_line);
  std::optional<std::string> root = codec::DecodeBase64(*root_line);
  if (!size) return BadCheckpoint("has no size");
  if (!root || root->size() != 32) return BadCheckpoint("has no root hash");
  checkpoint->origin = *origin;
  checkpoint->size = *size;
  checkpoint->root = *std::move(root);
  return Pass();
}

std::string FirstBytes(std::string_view hashed) {
  return Digest(Hash::kSha256, hashed).substr(0, kHintSize);
}

}  // namespace

Checked<Checkpoint> ParseCheckpoint(std::string_view envelope) {
  if (envelope.size() > kEnvelopeBytesMax) return BadCheckpoint("is too long");
  size_t blank_line = envelope.find("\n\n");
  if (blank_line == std::string_view::npos) return BadCheckpoint("has no signatures");
  Checkpoint checkpoint;
  checkpoint.text = envelope.substr(0, blank_line + 1);
  TRY(ParseText(checkpoint.text, &checkpoint));
  std::string_view lines = envelope.substr(blank_line + 2);
  while (!lines.empty()) {
    std::optional<std::string_view> line = TakeLine(&lines);
    std::optional<Checkpoint::Signature> signature;
    if (line) signature = ParseSignature(*line);
    if (!signature) return BadCheckpoint("has a malformed signature line");
    if (checkpoint.signatures.size() == kSignaturesMax)
      return BadCheckpoint("has too many signatures");
    checkpoint.signatures.push_back(*std::move(signature));
  }
  if (checkpoint.signatures.empty()) return BadCheckpoint("has no signatures");
  return checkpoint;
}

std::string NoteKeyHintV1(const PublicKey& key) { return FirstBytes(key.spki()); }

std::string NoteKeyHintV2(const PublicKey& key, std::string_view name) {
  // C2SP signed-note, "Signature types": 1 is Ed25519, 0xff is followed by a type in words.
  std::string prefix = std::string(name) + "\n";
  if (key.kind() == PublicKey::Kind::kEd25519) return FirstBytes(prefix + "\x01" + key.Raw());
  if (key.kind() == PublicKey::Kind::kRsa) {
    return FirstBytes(prefix + "\xff" + "PKIX-RSA-PKCS#1v1.5" + key.spki());
  }
  return FirstBytes(key.spki());
}

Check VerifyCheckpoint(const Checkpoint& checkpoint, std::string_view name, std::string_view hint,
                       const PublicKey& key) {
  bool named = false;
  bool signed_by_log = false;
  for (const Checkpoint::Signature& signature : checkpoint.signatures) {
    if (signature.name != name) continue;
    named = true;
    if (signature.hint != hint) continue;
    if (!key.Verifies(Hash::kSha256, checkpoint.text, signature.bytes)) {
      return Rejection{Reason::kCheckpointSignature,
                       "the checkpoint's signature is not '" + std::string(name) + "'s"};
    }
    signed_by_log = true;
  }
  if (signed_by_log) return Pass();
  if (!named) {
    return Rejection{Reason::kCheckpointOrigin,
                     "the checkpoint is not signed by '" + std::string(name) + "'"};
  }
  return Rejection{Reason::kCheckpointSignature, "the checkpoint is signed with another key"};
}

}  // namespace sigstore
