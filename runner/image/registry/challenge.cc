// SPDX-License-Identifier: Apache-2.0
#include "image/registry/challenge.h"

#include <optional>

#include "base/ascii.h"
#include "codec/wire/http_head.h"

namespace image {
namespace {

constexpr size_t kHeaderBytesMax = 8192;
constexpr size_t kParametersMax = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool SkipBlanks() {
    bool any = false;
    while (Take(' ') || Take('\t')) any = true;
    return any;
  }
  void SkipCommas() {
    while (SkipBlanks() || Take(',')) {
    }
  }
  std::string_view Token() {
    size_t end = 0;
    while (end < rest_.size() && codec::IsTokenChar(rest_[end])) ++end;
    std::string_view token = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return token;
  }
  // Reads on behind the opening quote. Returns nullopt if it is never closed.
  std::optional<std::string> QuotedRest() {
    std::string value;
    while (!rest_.empty()) {
      char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') return value;
      if (c == '\\' && !rest_.empty()) {
        c = rest_[0];
        rest_.remove_prefix(1);
      }
      value += c;
    }
    return std::nullopt;
  }
  std::string_view rest() const { return rest_; }
  void Reset(std::string_view rest) { rest_ = rest; }

 private:
  std::string_view rest_;
};

// name BWS "=" BWS ( token / quoted-string ), or nothing, and then nothing is consumed.
std::optional<std::pair<std::string, std::string>> TakeParameter(Reader& reader) {
  const std::string_view before = reader.rest();
  const std::string name = ascii::LowerCase(reader.Token());
  reader.SkipBlanks();
  if (!name.empty() && reader.Take('=')) {
    reader.SkipBlanks();
    if (reader.Take('"')) {
      if (std::optional<std::string> value = reader.QuotedRest()) return std::pair(name, *value);
    } else if (std::string_view value = reader.Token(); !value.empty()) {
      return std::pair(name, std::string(value));
    }
  }
  reader.Reset(before);
  return std::nullopt;
}

}  // namespace

std::string Challenge::Parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return "";
}

std::vector<Challenge> ParseChallenges(std::string_view header) {
  std::vector<Challenge> challenges;
  size_t parameters = 0;
  Reader reader(header.substr(0, kHeaderBytesMax));
  while (true) {
    reader.SkipCommas();
    // Behind a comma stands another parameter, or another scheme.
    if (!challenges.empty()) {
      if (auto parameter = TakeParameter(reader)) {
        if (++parameters > kParametersMax) return challenges;
        challenges.back().parameters.push_back(std::move(*parameter));
        continue;
      }
    }
    const std::string_view scheme = reader.Token();
    if (scheme.empty()) return challenges;
    const bool blank = reader.SkipBlanks();
    if (!blank && !reader.AtEnd() && !reader.rest().starts_with(',')) return challenges;
    challenges.push_back({ascii::LowerCase(scheme), {}});
  }
}

}  // namespace image
