// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/placeholder.h"

#include <string.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "gateway/credential/bound_secret.h"

namespace gateway {
namespace {

constexpr std::string_view kMarker = "openshell:resolve:env:";
constexpr std::string_view kAlias = "OPENSHELL-RESOLVE-ENV-";
// The markers as they are, and as forms send the first; both cases of the hexadecimal digit.
constexpr std::array<std::string_view, 4> kMarkers = {
    kMarker, kAlias, "openshell%3Aresolve%3Aenv%3A", "openshell%3aresolve%3aenv%3a"};
constexpr size_t kMarkerBytesMax = 28;
static_assert(kMarkers[2].size() == kMarkerBytesMax && kMarkers[3].size() == kMarkerBytesMax);
constexpr size_t kStableDigits = 64;

bool IsNameChar(char c) { return ascii::IsAlphanumeric(c) || c == '_'; }

bool IsPrefixChar(char c) { return IsNameChar(c) || c == '.' || c == '~' || c == '-'; }

size_t NameLength(std::string_view text) {
  const char* end = std::find_if_not(text.begin(), text.end(), IsNameChar);
  return static_cast<size_t>(end - text.begin());
}

bool AllOf(std::string_view text, std::string_view alphabet) {
  return !text.empty() && text.find_first_not_of(alphabet) == std::string_view::npos;
}

// All markers have one of two words in them: bodies without either are searched quickly.
bool HoldsMarker(std::string_view text) {
  constexpr std::string_view kLower = "resolve";
  constexpr std::string_view kUpper = "RESOLVE";
  bool possible = ::memmem(text.data(), text.size(), kLower.data(), kLower.size()) != nullptr ||
                  ::memmem(text.data(), text.size(), kUpper.data(), kUpper.size()) != nullptr;
  return possible && std::any_of(kMarkers.begin(), kMarkers.end(), [&](std::string_view marker) {
           return text.find(marker) != std::string_view::npos;
         });
}

}  // namespace

std::string PlaceholderFor(std::string_view name) {
  return std::string(kMarker) + std::string(name);
}

bool HasMarker(std::string_view text) {
  return text.find(kMarker) != std::string_view::npos ||
         text.find(kAlias) != std::string_view::npos;
}

std::optional<Placeholder> FindPlaceholder(std::string_view text, size_t from) {
  for (size_t search = from;;) {
    size_t plain = text.find(kMarker, search);
    size_t alias = text.find(kAlias, search);
    size_t marker = std::min(plain, alias);
    if (marker == std::string_view::npos) return std::nullopt;
    size_t name_at = marker + kMarker.size();
    static_assert(kMarker.size() == kAlias.size());
    size_t name_size = NameLength(text.substr(name_at));
    if (name_size == 0) {
      search = name_at;
      continue;
    }
    size_t begin = marker;
    while (marker == alias && begin > from && IsPrefixChar(text[begin - 1])) --begin;
    return Placeholder{begin, name_at + name_size - begin, text.substr(name_at, name_size)};
  }
}

std::optional<std::string_view> WholePlaceholder(std::string_view text) {
  std::optional<Placeholder> found = FindPlaceholder(text);
  if (!found.has_value() || found->size != text.size()) return std::nullopt;
  return found->name;
}

std::string_view WithoutRevision(std::string_view name) {
  size_t underscore = name.find('_');
  bool two_parts =
      underscore != std::string_view::npos && underscore > 1 && underscore + 1 < name.size();
  if (!two_parts) return name;
  std::string_view digits = name.substr(0, underscore);
  bool revision = digits.front() == 'v' && AllOf(digits.substr(1), "0123456789");
  bool stable = digits.front() == 's' && digits.size() == 1 + kStableDigits &&
                AllOf(digits.substr(1), "0123456789abcdef");
  return revision || stable ? name.substr(underscore + 1) : name;
}

std::string RedactPlaceholders(std::string_view text) {
  std::string out;
  size_t done = 0;
  while (std::optional<Placeholder> found = FindPlaceholder(text, done)) {
    out.append(text.substr(done, found->at - done)).append("[CREDENTIAL]");
    done = found->at + found->size;
  }
  return out.append(text.substr(done));
}

bool MarkerScanner::Feed(std::string_view piece) {
  if (found_) return true;
  // The tail has what spans the border; then comes the piece itself.
  constexpr size_t kTailBytesMax = kMarkerBytesMax - 1;
  tail_.append(piece.substr(0, kTailBytesMax));
  found_ = HoldsMarker(tail_) || HoldsMarker(piece);
  if (piece.size() > kTailBytesMax) tail_ = piece.substr(piece.size() - kTailBytesMax);
  if (tail_.size() > kTailBytesMax) tail_.erase(0, tail_.size() - kTailBytesMax);
  return found_;
}

}  // namespace gateway
