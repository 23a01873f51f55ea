// SPDX-License-Identifier: Apache-2.0
#include "change/sections/binary_block.h"

#include <zlib.h>

#include <cstdint>
#include <optional>

#include "base/ascii.h"
#include "codec/text/quantity.h"

namespace change {
namespace {

constexpr int64_t kBytesMax = int64_t{1} << 30;

Error NotSound() { return Error{Code::kInvalid, "the binary data is invalid"}; }

// One line of git's base85: its length as a letter, then five characters for four bytes.
bool DecodeLine(std::string_view line, std::string& bytes) {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
  if (line.empty()) return false;
  char letter = line.front();
  bool upper = ascii::IsUpper(letter);
  if (!upper && !ascii::IsLower(letter)) return false;
  size_t length =
      upper ? static_cast<size_t>(letter - 'A' + 1) : static_cast<size_t>(letter - 'a' + 27);
  line.remove_prefix(1);
  if (line.size() != (length + 3) / 4 * 5) return false;
  for (; !line.empty(); line.remove_prefix(5)) {
    uint64_t group = 0;
    for (char c : line.substr(0, 5)) {
      size_t digit = kDigits.find(c);
      if (digit == std::string_view::npos) return false;
      group = group * 85 + digit;
    }
    if (group > UINT32_MAX) return false;
    for (int shift = 24; shift >= 0 && length > 0; shift -= 8, --length) {
      bytes += static_cast<char>(group >> shift & 0xff);
    }
  }
  return true;
}

Result<std::string> Inflate(const std::string& packed, int64_t size) {
  if (size > kBytesMax || packed.size() > static_cast<size_t>(kBytesMax)) return NotSound();
  // Not sized by what the block only claims: zlib gives at most 1032 bytes for one.
  if (size > static_cast<int64_t>(packed.size()) * 1040) return NotSound();
  std::string bytes(static_cast<size_t>(size) + 1,
                    '\0');  // One more, to see a stream that goes on.
  uLongf got = bytes.size();
  int status = ::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &got,
                            reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (status != Z_OK || static_cast<int64_t>(got) != size) return NotSound();
  bytes.resize(got);
  return bytes;
}

// A length in a delta's head: seven bits a byte, lowest first.
std::optional<size_t> TakeLength(std::string_view& delta) {
  uint64_t length = 0;
  for (int shift = 0; shift < 63 && !delta.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(delta.front());
    delta.remove_prefix(1);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return length;
  }
  return std::nullopt;
}

// The bytes of `value` that `mask` says are there, lowest first.
bool TakeBytes(std::string_view& delta, unsigned mask, int count, size_t& value) {
  for (int i = 0; i < count; ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (delta.empty()) return false;
    value |= static_cast<size_t>(static_cast<unsigned char>(delta.front())) << (8 * i);
    delta.remove_prefix(1);
  }
  return true;
}

// git's pack delta (gitformat-pack(5)): copies from the old bytes and insertions.
Result<std::string> ApplyDelta(std::string_view delta, std::string_view old_bytes) {
  std::optional<size_t> old_size = TakeLength(delta);
  std::optional<size_t> new_size = TakeLength(delta);
  if (!old_size.has_value() || *old_size != old_bytes.size()) return NotSound();
  if (!new_size.has_value() || *new_size > static_cast<size_t>(kBytesMax)) return NotSound();
  std::string bytes;
  while (!delta.empty()) {
    auto op = static_cast<unsigned char>(delta.front());
    delta.remove_prefix(1);
    std::string_view piece;
    if ((op & 0x80) != 0) {
      size_t offset = 0;
      size_t length = 0;
      if (!TakeBytes(delta, op & 0xfU, 4, offset) || !TakeBytes(delta, op >> 4 & 7U, 3, length)) {
        return NotSound();
      }
      if (length == 0) length = 0x10000;
      if (offset > old_bytes.size() || length > old_bytes.size() - offset) return NotSound();
      piece = old_bytes.substr(offset, length);
    } else {
      if (op == 0 || op > delta.size()) return NotSound();
      piece = delta.substr(0, op);
      delta.remove_prefix(op);
    }
    if (piece.size() > *new_size - bytes.size()) return NotSound();
    bytes += piece;
  }
  if (bytes.size() != *new_size) return NotSound();
  return bytes;
}

Result<int64_t> MadeByDelta(const BinaryBlock& block) {
  const std::string bytes = TRY(InflateBlock(block));
  std::string_view delta = bytes;
  TakeLength(delta);
  const std::optional<size_t> made = TakeLength(delta);
  if (!made.has_value() || *made > static_cast<size_t>(kBytesMax)) return NotSound();
  return static_cast<int64_t>(*made);
}

}  // namespace

Result<std::string> InflateBlock(const BinaryBlock& block) {
  std::string packed;
  for (std::string_view rest = block.lines; !rest.empty();) {
    size_t newline = rest.find('\n');
    if (newline == std::string_view::npos || !DecodeLine(rest.substr(0, newline), packed)) {
      return NotSound();
    }
    rest.remove_prefix(newline + 1);
  }
  return Inflate(packed, block.size);
}

Result<std::string> DecodeBinary(const BinaryBlock& block, std::string_view old_bytes) {
  std::string bytes = TRY(InflateBlock(block));
  if (!block.delta) return bytes;
  return ApplyDelta(bytes, old_bytes);
}

Status CheckDecodedSize(const std::vector<PatchSection>& sections, int64_t bytes_max,
                        Deadline deadline) {
  int64_t left = bytes_max;
  auto take = [&](int64_t bytes) -> Status {
    if (bytes > left) {
      return Error{Code::kRefused, "the binary files of the patch inflate to more than " +
                                       codec::RenderSize(bytes_max)};
    }
    left -= bytes;
    return Ok();
  };
  for (const PatchSection& section : sections) {
    if (deadline.passed()) return Error{Code::kTemporary, "no time is left to judge the patch"};
    if (!section.binary.has_value()) continue;
    TRY(take(section.binary->size));
    if (!section.binary->delta) continue;
    const int64_t made = TRY(MadeByDelta(*section.binary));
    TRY(take(made));
  }
  return Ok();
}

}  // namespace change
