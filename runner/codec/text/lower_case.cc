// SPDX-License-Identifier: Apache-2.0
#include "codec/text/lower_case.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "codec/text/lower_case_table.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr char32_t kSigma = 0x3a3;
constexpr char32_t kFinalSigma = 0x3c2;
constexpr char32_t kSmallSigma = 0x3c3;
constexpr char32_t kDottedI = 0x130;
constexpr std::string_view kAsciiIgnored = "'.:^`";

// The row of a sorted table whose range has `point`; null if none has.
template <typename Row>
const Row* Find(std::span<const Row> table, char32_t point) {
  const auto row = std::lower_bound(table.begin(), table.end(), point,
                                    [](const Row& one, char32_t at) { return one.last < at; });
  return row != table.end() && row->first <= point ? &*row : nullptr;
}

bool IsCased(char32_t point) {
  if (point < 0x80) return ascii::IsAlpha(static_cast<char>(point));
  return Find<CodePoints>(kCased, point) != nullptr;
}

bool IsIgnored(char32_t point) {
  if (point < 0x80) return kAsciiIgnored.find(static_cast<char>(point)) != std::string_view::npos;
  return Find<CodePoints>(kCaseIgnored, point) != nullptr;
}

// Returns whether a letter stands before (or behind) a place, what is ignored aside. Unicode,
// 3.13, Final_Sigma.
bool IsAfterLetter(std::string_view before) {
  char32_t last = 0;
  for (size_t at = 0; at < before.size();) {
    const Utf8Character character = NextUtf8(before.substr(at));
    const char32_t value = character.valid ? character.value : 0;
    if (!IsIgnored(value) || IsCased(value)) last = value;
    at += character.bytes;
  }
  return IsCased(last);
}

bool IsBeforeLetter(std::string_view behind) {
  while (!behind.empty()) {
    const Utf8Character character = NextUtf8(behind);
    const char32_t value = character.valid ? character.value : 0;
    if (IsCased(value)) return true;
    if (!IsIgnored(value)) return false;
    behind.remove_prefix(character.bytes);
  }
  return false;
}

// Appends the small form of the character at `*at`, and moves behind it.
void AppendLower(std::string_view text, size_t* at, std::string* lower) {
  constexpr size_t kWordBytesMax = 256;  // How far back a sigma's word is looked at.
  if (static_cast<unsigned char>(text[*at]) < 0x80) {
    *lower += ascii::ToLower(text[(*at)++]);
    return;
  }
  const Utf8Character character = NextUtf8(text.substr(*at));
  const CaseShift* shift = character.valid ? Find<CaseShift>(kLowerCase, character.value) : nullptr;
  if (character.valid && character.value == kDottedI) {
    *lower += "i\xcc\x87";
  } else if (character.valid && character.value == kSigma) {
    const size_t begin = *at - std::min(*at, kWordBytesMax);
    const bool ends = IsAfterLetter(text.substr(begin, *at - begin)) &&
                      !IsBeforeLetter(text.substr(*at + character.bytes));
    AppendUtf8(ends ? kFinalSigma : kSmallSigma, lower);
  } else if (shift != nullptr && (character.value - shift->first) % shift->step == 0) {
    AppendUtf8(static_cast<char32_t>(static_cast<int32_t>(character.value) + shift->shift), lower);
  } else {
    *lower += text.substr(*at, character.bytes);
  }
  *at += character.bytes;
}

}  // namespace

std::string LowerCase(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t at = 0; at < text.size();) AppendLower(text, &at, &lower);
  return lower;
}

bool ContainsInAnyCase(std::string_view text, std::string_view needle) {
  constexpr size_t kWindowBytes = size_t{1} << 16;
  const std::string wanted = LowerCase(needle);
  std::string window;
  for (size_t at = 0;;) {
    const size_t full = wanted.size() + kWindowBytes;
    while (at < text.size() && window.size() < full) AppendLower(text, &at, &window);
    if (window.find(wanted) != std::string::npos) return true;
    if (at == text.size()) return false;
    window.erase(0, window.size() - wanted.size());
  }
}

}  // namespace codec
