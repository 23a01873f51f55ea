// SPDX-License-Identifier: Apache-2.0
#include "codec/call/graphql_lexer.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"

namespace codec {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsNameStart(char c) { return ascii::IsAlpha(c) || c == '_'; }
bool IsHexDigit(char c) {
  return ascii::IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Returns whether no document may hold `c` anywhere, not even in a comment: controls but tab and
// line ends.
bool IsForbidden(char c) {
  return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
}

}  // namespace

Error GraphqlLexer::Fault(size_t at, std::string_view what) const {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < std::min(at, document_.size()); ++i) {
    const bool ends_line = document_[i] == '\n' || (document_[i] == '\r' && At(i + 1) != '\n');
    line += ends_line ? 1 : 0;
    column = ends_line ? 1 : column + 1;
  }
  return Error{Code::kInvalid,
               std::to_string(line) + ":" + std::to_string(column) + ": " + std::string(what)};
}

void GraphqlLexer::SkipIgnored() {
  while (at_ < document_.size()) {
    const char c = document_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',') {
      ++at_;
    } else if (document_.substr(at_).starts_with(kByteOrderMark)) {
      at_ += kByteOrderMark.size();
    } else if (c == '#') {
      while (at_ < document_.size() && At(at_) != '\n' && At(at_) != '\r' &&
             !IsForbidden(At(at_))) {
        ++at_;
      }
    } else {
      return;
    }
  }
}

Result<size_t> GraphqlLexer::NumberEnd() const {
  size_t end = at_;
  auto digits = [&] {
    const size_t begin = end;
    while (ascii::IsDigit(At(end))) ++end;
    return end > begin;
  };
  if (At(end) == '-') ++end;
  const size_t integer = end;
  if (!digits()) return Fault(end, "expected a digit");
  if (At(integer) == '0' && end - integer > 1) return Fault(integer, "a number begins with zero");
  if (At(end) == '.') {
    ++end;
    if (!digits()) return Fault(end, "expected a digit");
  }
  if (At(end) == 'e' || At(end) == 'E') {
    ++end;
    if (At(end) == '+' || At(end) == '-') ++end;
    if (!digits()) return Fault(end, "expected a digit");
  }
  if (At(end) == '.' || IsNameStart(At(end))) return Fault(end, "a number runs into a name");
  return end;
}

Result<size_t> GraphqlLexer::StringEnd() const {
  size_t end = at_ + 1;
  while (end < document_.size() && At(end) != '"') {
    const char c = document_[end];
    if (c == '\n' || c == '\r' || IsForbidden(c)) return Fault(end, "unfinished string");
    if (c != '\\') {
      ++end;
      continue;
    }
    const char escape = At(end + 1);
    if (escape == 'u') {
      for (size_t digit = end + 2; digit < end + 6; ++digit) {
        if (!IsHexDigit(At(digit))) return Fault(end, "invalid escape");
      }
      end += 6;
    } else if (escape != '\0' &&
               std::string_view("\"\\/bfnrt").find(escape) != std::string_view::npos) {
      end += 2;
    } else {
      return Fault(end, "invalid escape");
    }
  }
  if (end >= document_.size()) return Fault(at_, "unfinished string");
  return end + 1;
}

Result<size_t> GraphqlLexer::BlockStringEnd() const {
  size_t end = at_ + 3;
  while (end < document_.size()) {
    const std::string_view rest = document_.substr(end);
    if (rest.starts_with("\"\"\"")) return end + 3;
    if (IsForbidden(rest.front())) return Fault(end, "control character in a string");
    end += rest.starts_with("\\\"\"\"") ? 4 : 1;
  }
  return Fault(at_, "unfinished string");
}

Result<GraphqlToken> GraphqlLexer::Next() {
  SkipIgnored();
  if (at_ >= document_.size()) return GraphqlToken{GraphqlToken::kEnd, {}, at_};
  if (tokens_left_ == 0) return Fault(at_, "too many tokens");
  --tokens_left_;

  const char c = document_[at_];
  GraphqlToken::Kind kind = GraphqlToken::kPunctuator;
  size_t end = at_ + 1;
  if (IsNameStart(c)) {
    kind = GraphqlToken::kName;
    while (IsNameStart(At(end)) || ascii::IsDigit(At(end))) ++end;
  } else if (ascii::IsDigit(c) || c == '-') {
    kind = GraphqlToken::kNumber;
    end = TRY(NumberEnd());
  } else if (document_.substr(at_).starts_with("\"\"\"")) {
    kind = GraphqlToken::kString;
    end = TRY(BlockStringEnd());
  } else if (c == '"') {
    kind = GraphqlToken::kString;
    end = TRY(StringEnd());
  } else if (document_.substr(at_).starts_with("...")) {
    end = at_ + 3;
  } else if (c == '\0' || std::string_view("!$&():=@[]{|}").find(c) == std::string_view::npos) {
    return Fault(at_, "unexpected character");
  }
  GraphqlToken token{kind, document_.substr(at_, end - at_), at_};
  at_ = end;
  return token;
}

}  // namespace codec
