// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/query.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr std::string_view kIgnoredInFront = " \t\r\n\v\f[]";

char Folded(char c) { return c == '.' || c == ' ' || c == '[' ? '_' : ascii::ToLower(c); }

// Returns whether `rest` may follow where one key ends and still leave it the same key, or the
// whole of which the other is a member.
bool IsTail(std::string_view rest) {
  return rest.empty() || rest.front() == '[' ||
         rest.find_first_not_of(" ]") == std::string_view::npos;
}

std::string_view WithoutFront(std::string_view key) {
  size_t start = key.find_first_not_of(kIgnoredInFront);
  return start == std::string_view::npos ? key : key.substr(start);
}

}  // namespace

bool MayMeanKey(std::string_view key, std::string_view wanted) {
  if (key == wanted) return true;
  key = WithoutFront(key);
  wanted = WithoutFront(wanted);
  while (!key.empty() && !wanted.empty()) {
    if (key.front() == ']' && wanted.front() != ']') {
      key.remove_prefix(1);
    } else if (wanted.front() == ']' && key.front() != ']') {
      wanted.remove_prefix(1);
    } else if (Folded(key.front()) == Folded(wanted.front())) {
      key.remove_prefix(1);
      wanted.remove_prefix(1);
    } else {
      break;
    }
  }
  return (key.empty() && IsTail(wanted)) || (wanted.empty() && IsTail(key));
}

// Text without an escape is given as it stands.
bool QueryReader::Decode(std::string_view text, size_t* used, std::string_view* out) {
  *out = text;
  if (text.find_first_of("%+") != std::string_view::npos) {
    char* begin = decoded_.data() + *used;
    char* end = begin;
    for (size_t i = 0; i < text.size(); ++i) {
      char c = text[i] == '+' ? ' ' : text[i];
      if (text[i] == '%') {
        int high = i + 2 < text.size() ? ascii::HexValue(text[i + 1]) : -1;
        int low = i + 2 < text.size() ? ascii::HexValue(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
          error_ = "an invalid percent escape in the query";
          return false;
        }
        c = static_cast<char>(high * 16 + low);
        i += 2;
      }
      *end++ = c;
    }
    *used += static_cast<size_t>(end - begin);
    *out = std::string_view(begin, static_cast<size_t>(end - begin));
  }
  if (FindInvalidUtf8(*out) == std::string_view::npos) return true;
  error_ = "the query is not UTF-8";
  return false;
}

bool QueryReader::Next() {
  while (error_.empty() && !rest_.empty()) {
    size_t end = std::min(rest_.find_first_of(separators_), rest_.size());
    std::string_view piece = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (piece.empty()) continue;
    if (piece.size() > decoded_.size()) {
      error_ = "the query has a pair longer than 65536 bytes";
      return false;
    }
    size_t equals = std::min(piece.find('='), piece.size());
    size_t used = 0;
    return Decode(piece.substr(0, equals), &used, &key_) &&
           Decode(piece.substr(std::min(equals + 1, piece.size())), &used, &value_);
  }
  return false;
}

}  // namespace codec
