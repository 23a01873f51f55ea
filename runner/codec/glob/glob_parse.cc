// SPDX-License-Identifier: Apache-2.0
// Patterns to tokens. The corner cases are those of the globset and glob crates, read from their
// behaviour: a policy must mean here what it means there.
#include <string>
#include <utility>

#include "codec/glob/glob_program.h"

namespace codec {
namespace {

constexpr size_t kGroupDepthMax = 16;

GlobToken Byte(char c) {
  GlobToken token;
  token.byte = static_cast<uint8_t>(c);
  return token;
}

GlobToken Of(GlobToken::Kind kind) {
  GlobToken token;
  token.kind = kind;
  return token;
}

using Kind = GlobToken::Kind;

class SeparatedParser {
 public:
  explicit SeparatedParser(std::string_view pattern) : pattern_(pattern) {}

  Result<GlobTokens> Parse() {
    while (at_ < pattern_.size()) {
      char c = pattern_[at_++];
      if (c == '?') {
        Push(Of(Kind::kComponentByte));
      } else if (c == '*') {
        ParseStar();
      } else if (c == '[') {
        TRY(ParseClass());
      } else if (c == '{') {
        if (groups_.size() >= kGroupDepthMax) return Invalid("groups nested too deeply");
        groups_.push_back(branches_.size());
        branches_.emplace_back();
      } else if (c == '}') {
        TRY(CloseGroup());
      } else if (c == ',' && !groups_.empty()) {
        branches_.emplace_back();
      } else if (c == '\\') {
        if (at_ == pattern_.size()) return Invalid("a trailing backslash");
        Push(Byte(pattern_[at_++]));
      } else {
        Push(Byte(c));
      }
    }
    if (!groups_.empty()) return Invalid("'{' without '}'");
    return std::move(branches_.front());
  }

 private:
  void Push(GlobToken token) { branches_.back().push_back(std::move(token)); }
  bool AtEnd() const { return at_ == pattern_.size(); }
  bool Next(char c) const { return !AtEnd() && pattern_[at_] == c; }

  void PushTwoRuns() {
    Push(Of(Kind::kComponentRun));
    Push(Of(Kind::kComponentRun));
  }

  // Behind the first '*'. `**` is recursive only as a whole component; elsewhere it is two `*`.
  void ParseStar() {
    char before = at_ >= 2 ? pattern_[at_ - 2] : '\0';
    if (!Next('*')) {
      Push(Of(Kind::kComponentRun));
      return;
    }
    ++at_;
    if (branches_.back().empty()) {
      if (!AtEnd() && !Next('/')) {
        PushTwoRuns();
        return;
      }
      Push(Of(Kind::kPrefix));
      if (!AtEnd()) ++at_;
      return;
    }
    if (before != '/') {
      PushTwoRuns();
      return;
    }
    bool in_group = !groups_.empty();
    bool suffix = AtEnd() || (in_group && (Next(',') || Next('}')));
    if (!suffix && !Next('/')) {
      PushTwoRuns();
      return;
    }
    if (!suffix) ++at_;
    ReplaceSlash(suffix);
  }

  // The '/' in front of "**" belongs to it; a recursive token there already stays what it is.
  void ReplaceSlash(bool suffix) {
    GlobToken last = std::move(branches_.back().back());
    branches_.back().pop_back();
    if (last.kind == Kind::kPrefix || last.kind == Kind::kSuffix) {
      Push(std::move(last));
    } else {
      Push(Of(suffix ? Kind::kSuffix : Kind::kInfix));
    }
  }

  Status CloseGroup() {
    if (groups_.empty()) return Invalid("'}' without '{'");
    size_t start = groups_.back();
    groups_.pop_back();
    GlobToken token = Of(Kind::kAlternatives);
    for (size_t i = start; i < branches_.size(); ++i) {
      token.branches.push_back(std::move(branches_[i]));
    }
    branches_.resize(start);
    Push(std::move(token));
    return Ok();
  }

  Status ParseClass() {
    GlobToken token = Of(Kind::kClass);
    bool negated = Next('!') || Next('^');
    if (negated) ++at_;
    bool first = true;
    bool in_range = false;
    uint8_t low = 0;
    for (;; first = false) {
      if (AtEnd()) return Invalid("'[' without ']'");
      uint8_t c = static_cast<uint8_t>(pattern_[at_++]);
      if (c >= 0x80) return Invalid("a non-ASCII character in '[...]'");
      if (c == ']' && !first) break;
      if (c == '-' && !first && !in_range) {
        in_range = true;
        continue;
      }
      if (in_range && c < low) return Invalid("a reversed range in '[...]'");
      for (unsigned b = in_range ? low : c; b <= c; ++b) token.bytes.set(b);
      low = c;
      in_range = false;
    }
    if (in_range) token.bytes.set('-');
    if (negated) token.bytes.flip();
    Push(std::move(token));
    return Ok();
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::vector<GlobTokens> branches_{1};  // Open alternatives; the last one grows.
  std::vector<size_t> groups_;           // The places in `branches_` where open groups start.
};

// A class of the crossing dialect: the text between the brackets, "a-z" being a range.
std::bitset<256> ParseSpecifiers(std::string_view text) {
  std::bitset<256> bytes;
  size_t i = 0;
  while (i < text.size()) {
    unsigned low = static_cast<uint8_t>(text[i]);
    unsigned high = low;
    if (i + 2 < text.size() && text[i + 1] == '-') {
      high = static_cast<uint8_t>(text[i + 2]);
      i += 3;
    } else {
      i += 1;
    }
    for (unsigned b = low; b <= high; ++b) bytes.set(b);
  }
  return bytes;
}

class CrossingParser {
 public:
  explicit CrossingParser(std::string_view pattern) : pattern_(pattern) {}

  Result<GlobTokens> Parse() {
    while (at_ < pattern_.size()) {
      char c = pattern_[at_];
      if (c == '?') {
        tokens_.push_back(Of(Kind::kAny));
        ++at_;
      } else if (c == '*') {
        TRY(ParseStars());
      } else if (c == '[') {
        TRY(ParseClass());
      } else {
        tokens_.push_back(Byte(c));
        ++at_;
      }
    }
    return std::move(tokens_);
  }

 private:
  Status ParseStars() {
    size_t start = at_;
    while (at_ < pattern_.size() && pattern_[at_] == '*') ++at_;
    if (at_ - start == 1) {
      tokens_.push_back(Of(Kind::kAnyRun));
      return Ok();
    }
    bool component = (start == 0 || pattern_[start - 1] == '/') &&
                     (at_ == pattern_.size() || pattern_[at_] == '/');
    if (at_ - start > 2 || !component) return Invalid("'**' must be a whole component");
    if (at_ < pattern_.size()) ++at_;
    tokens_.push_back(Of(Kind::kComponents));
    return Ok();
  }

  Status ParseClass() {
    bool negated = at_ + 1 < pattern_.size() && pattern_[at_ + 1] == '!';
    size_t first = at_ + (negated ? 2 : 1);
    // The first character is in the class even when it is ']'.
    size_t end = first < pattern_.size() ? pattern_.find(']', first + 1) : std::string_view::npos;
    if (end == std::string_view::npos) return Invalid("'[' without ']'");
    GlobToken token = Of(Kind::kClass);
    token.bytes = ParseSpecifiers(pattern_.substr(first, end - first));
    if (negated) token.bytes.flip();
    tokens_.push_back(std::move(token));
    at_ = end + 1;
    return Ok();
  }

  std::string_view pattern_;
  size_t at_ = 0;
  GlobTokens tokens_;
};

}  // namespace

Result<GlobTokens> ParseSeparatedGlob(std::string_view pattern) {
  return SeparatedParser(pattern).Parse();
}

Result<GlobTokens> ParseCrossingGlob(std::string_view pattern) {
  return CrossingParser(pattern).Parse();
}

}  // namespace codec
