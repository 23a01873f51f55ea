// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/text_prints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace gateway {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio; odd.
constexpr int kHexDigits = 4;

// The power of kBase by which the letter that leaves a window has been multiplied.
constexpr uint64_t Power(size_t exponent) {
  uint64_t power = 1;
  for (size_t i = 0; i < exponent; ++i) power *= kBase;
  return power;
}

// The high bits of a sum of multiples are those that all letters had a part in.
uint64_t Mix(uint64_t hash) {
  hash ^= hash >> 32;
  return hash * kBase;
}

// Blanks, marks and arrows beyond ASCII, which programs put around lines.
bool IsMark(char32_t c) {
  return (c >= 0x80 && c <= 0xbf) || (c >= 0x2000 && c <= 0x303f) || (c >= 0xfe00 && c <= 0xfeff);
}

// Returns how many bytes two texts have in common at their beginnings.
size_t CommonBegin(std::string_view a, std::string_view b) {
  constexpr size_t kBlock = 4096;
  const size_t shorter = std::min(a.size(), b.size());
  size_t same = 0;
  while (same + kBlock <= shorter && std::memcmp(a.data() + same, b.data() + same, kBlock) == 0) {
    same += kBlock;
  }
  while (same < shorter && a[same] == b[same]) ++same;
  return same;
}

}  // namespace

void LetterReader::TakeCharacter(char32_t character, std::string* letters) {
  const bool low = character >= 0xdc00 && character <= 0xdfff;
  if (low && high_ != 0) character = 0x10000 + ((high_ - 0xd800) << 10) + (character - 0xdc00);
  high_ = 0;
  if (character >= 0xd800 && character <= 0xdfff) {
    if (!low) high_ = character;
  } else if (character < 0x80) {
    const char c = static_cast<char>(character);
    if (ascii::IsAlpha(c)) *letters += ascii::ToLower(c);
  } else if (!IsMark(character)) {
    codec::AppendUtf8(character, letters);
  }
}

void LetterReader::Take(char c, std::string* letters) {
  if (hex_left_ > 0) {
    const int digit = ascii::HexValue(c);
    if (digit >= 0) {
      code_ = code_ * 16 + static_cast<char32_t>(digit);
      if (--hex_left_ == 0) TakeCharacter(code_, letters);
      return;
    }
    hex_left_ = 0;  // No escape: of a path, say.
  }
  if (c == '\\') {
    escape_ = true;
    return;
  }
  if (std::exchange(escape_, false)) {
    if (c == 'u') {
      hex_left_ = kHexDigits;
      code_ = 0;
    }
    if (std::string_view("untrbf").find(c) != std::string_view::npos) return;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x80) {
    character_.clear();
    return TakeCharacter(byte, letters);
  }
  character_ += c;
  const codec::Utf8Character next = codec::NextUtf8(character_);
  constexpr size_t kBytesMax = 4;
  if (next.valid) TakeCharacter(next.value, letters);
  const bool begins = (byte & 0xc0) == 0xc0;
  if (next.valid || character_.size() >= kBytesMax) {
    character_.clear();
  } else if (begins && character_.size() > 1) {
    character_ = c;
  }
}

void LetterReader::Read(std::string_view bytes, std::string* letters) {
  letters->reserve(letters->size() + bytes.size());
  for (char c : bytes) {
    // Most of what models are sent.
    const bool plain = hex_left_ == 0 && !escape_ && high_ == 0 && ascii::IsLower(c);
    if (plain) {
      *letters += c;
    } else {
      Take(c, letters);
    }
  }
}

std::string_view LastMessage::NewPart(std::string_view message) {
  constexpr size_t kKeptMax = size_t{8} << 20;
  constexpr size_t kAround = 2 * TextPrints::kFoundLetters;
  const size_t shorter = std::min(message.size(), last_.size());
  const size_t same = CommonBegin(message, last_);
  if (same == message.size() && same == last_.size()) return {};
  size_t same_end = 0;
  while (same_end < shorter - same &&
         message[message.size() - 1 - same_end] == last_[last_.size() - 1 - same_end]) {
    ++same_end;
  }
  size_t begin = same;
  size_t end = message.size() - same_end;
  last_.replace(same, last_.size() - same - same_end, message.substr(same, end - same));
  if (last_.size() > kKeptMax) last_.clear();
  const auto is_letter = [&](size_t at) {
    return ascii::IsAlpha(message[at]) || static_cast<unsigned char>(message[at]) >= 0x80;
  };
  for (size_t letters = 0; begin > 0 && letters < kAround; letters += is_letter(begin)) --begin;
  for (size_t letters = 0; end < message.size() && letters < kAround; ++end) {
    letters += is_letter(end) ? 1 : 0;
  }
  return message.substr(begin, end - begin);
}

TextPrints::TextPrints(const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    LetterReader reader;
    std::string letters;
    reader.Read(texts[i], &letters);
    Add(i, letters);
  }
}

// Of the windows that begin at kOneOf letters in a row, the one with the smallest hash counts:
// a text that has all of them has that one ("winnowing", Schleimer and others, 2003).
void TextPrints::Add(size_t text, std::string_view letters) {
  if (letters.size() < kLettersMin) return;
  if (letters.size() < kWindow) {
    shorts_.emplace_back(letters, text);
    return;
  }
  std::vector<uint64_t> hashes;
  uint64_t hash = 0;
  for (size_t i = 0; i < letters.size(); ++i) {
    hash = hash * kBase + static_cast<unsigned char>(letters[i]);
    if (i >= kWindow) hash -= static_cast<unsigned char>(letters[i - kWindow]) * Power(kWindow);
    if (i + 1 >= kWindow) hashes.push_back(Mix(hash));
  }
  const size_t group = std::min(kOneOf, hashes.size());
  for (size_t i = 0; i + group <= hashes.size(); ++i) {
    const uint64_t least = *std::min_element(hashes.begin() + static_cast<ptrdiff_t>(i),
                                             hashes.begin() + static_cast<ptrdiff_t>(i + group));
    prints_.emplace(least, text);
    begins_.set(least >> (64 - kBeginsBits));
  }
}

std::optional<size_t> TextPrints::Look::FindShort() {
  for (const auto& [letters, text] : prints_.shorts_) {
    if (letters_.find(letters) != std::string::npos) return text;
  }
  return std::nullopt;
}

std::optional<size_t> TextPrints::Look::Find(std::string_view bytes) {
  constexpr uint64_t kLeaving = Power(kWindow);
  const size_t known = letters_.size();
  reader_.Read(bytes, &letters_);
  for (size_t i = known; i < letters_.size(); ++i) {
    hash_ = hash_ * kBase + static_cast<unsigned char>(letters_[i]);
    if (seen_ < kWindow) {
      if (++seen_ < kWindow) continue;
    } else {
      hash_ -= static_cast<unsigned char>(letters_[i - kWindow]) * kLeaving;
    }
    const uint64_t print = Mix(hash_);
    if (!prints_.begins_[print >> (64 - kBeginsBits)]) continue;
    const auto found = prints_.prints_.find(print);
    if (found != prints_.prints_.end()) return found->second;
  }
  const std::optional<size_t> found = FindShort();
  letters_.erase(0, letters_.size() - std::min(letters_.size(), kWindow));
  return found;
}

}  // namespace gateway
