// SPDX-License-Identifier: Apache-2.0
#include "codec/text/fold.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// DerivedCoreProperties.txt, Unicode 16.
constexpr Range kDefaultIgnorable[] = {
    {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

struct Folding {
  char32_t from;
  std::string_view to;
};

// CaseFolding.txt, Unicode 16, status C and F: what becomes ASCII alone.
constexpr Folding kFoldings[] = {
    {0xdf, "ss"},    {0x17f, "s"},   {0x1e9e, "ss"}, {0x212a, "k"},
    {0xfb00, "ff"},  {0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"},
    {0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"},
};

}  // namespace

bool IsDefaultIgnorable(char32_t c) {
  if (c < std::begin(kDefaultIgnorable)->first) return false;  // The ranges are in order.
  return std::any_of(std::begin(kDefaultIgnorable), std::end(kDefaultIgnorable),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

std::string FoldToAscii(std::string_view text) {
  std::string folded;
  while (!text.empty()) {
    const Utf8Character character = NextUtf8(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
    const Folding* found = std::end(kFoldings);
    if (character.valid && character.value >= 0x80) {
      found = std::find_if(std::begin(kFoldings), std::end(kFoldings),
                           [&](const Folding& folding) { return folding.from == character.value; });
    }
    if (found != std::end(kFoldings)) {
      folded += found->to;
    } else {
      for (char c : bytes) folded += ascii::ToLower(c);
    }
  }
  return folded;
}

std::string FoldFileText(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const Utf8Character character = NextUtf8(text);
    if (!character.valid || !IsDefaultIgnorable(character.value)) {
      kept += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return FoldToAscii(kept);
}

std::string FoldFileName(std::string_view component) {
  std::string folded = FoldFileText(component);
  folded.resize(std::min(folded.find(':'), folded.size()));
  while (folded.size() > 1 && (folded.back() == '.' || folded.back() == ' ')) folded.pop_back();
  return folded;
}

}  // namespace codec
