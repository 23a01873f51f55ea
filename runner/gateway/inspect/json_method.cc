// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/json_method.h"

#include <algorithm>

#include "base/ascii.h"

namespace gateway {
namespace {

// More than any name or method that is looked for.
constexpr size_t kKeptBytesMax = 64;
// In place of what is in none of them.
constexpr char kUnknownCharacter = '?';

class JsonMethodFilter final : public StreamFilter {
 public:
  explicit JsonMethodFilter(MethodJudge judge) : judge_(std::move(judge)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool, std::string& out) override {
    for (std::string_view rest = in; !rest.empty() && !over_;) {
      rest.remove_prefix(in_string_ ? TakeOfString(rest) : TakeOfStructure(rest.front()));
      if (refusal_.has_value()) return std::move(refusal_);
    }
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  // Of an outermost member's name, or of the value of one that names a method.
  bool wanted() const { return depth_ == 1 && (in_name_ || named_); }

  // At least one byte.
  size_t TakeOfString(std::string_view in) {
    if (escape_ != Escape::kNone) return TakeOfEscape(in.front());
    auto special = std::find_if(in.begin(), in.end(), [](char c) { return c == '"' || c == '\\'; });
    auto plain = static_cast<size_t>(special - in.begin());
    if (wanted()) Keep(in.substr(0, plain));
    if (plain == in.size()) return plain;
    if (in[plain] == '\\') {
      escape_ = Escape::kBegun;
    } else {
      EndString();
    }
    return plain + 1;
  }

  size_t TakeOfEscape(char c) {
    constexpr std::string_view kShort = "bfnrt";
    constexpr std::string_view kMeans = "\b\f\n\r\t";
    if (escape_ == Escape::kUnicode) {
      code_ = code_ * 16 + ascii::HexValue(c);
      if (--digits_left_ > 0) return 1;
      Keep(
          std::string(1, code_ > 0 && code_ < 0x80 ? static_cast<char>(code_) : kUnknownCharacter));
    } else if (c == 'u') {
      escape_ = Escape::kUnicode;
      code_ = 0;
      digits_left_ = 4;
      return 1;
    } else {
      size_t at = kShort.find(c);
      Keep(std::string(1, at == std::string_view::npos ? c : kMeans[at]));
    }
    escape_ = Escape::kNone;
    return 1;
  }

  void Keep(std::string_view piece) {
    text_.append(piece.substr(0, kKeptBytesMax + 1 - std::min(text_.size(), kKeptBytesMax + 1)));
  }

  void EndString() {
    in_string_ = false;
    if (!wanted()) return;
    bool whole = text_.size() <= kKeptBytesMax;
    if (in_name_) {
      named_ = whole && NamesMethod(text_);
    } else {
      refusal_ = judge_(whole ? MethodOf(text_) : "");
      named_ = false;
    }
  }

  size_t TakeOfStructure(char c) {
    constexpr std::string_view kBlanks = " \t\r\n";
    // A byte order mark stands in front of some documents.
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    bool blank = kBlanks.find(c) != std::string_view::npos;
    bool value = !blank && std::string_view(":,\"").find(c) == std::string_view::npos;
    if (named_ && depth_ == 1 && value) {
      refusal_ = judge_("");  // A number, a list: what that means, nobody knows.
      named_ = false;
    }
    if (depth_ == 0) {
      over_ = c != '{' && !blank && kMark.find(c) == std::string_view::npos;
      if (c == '{') ++depth_;
      in_name_ = c == '{';
    } else if (c == '"') {
      in_string_ = true;
      text_.clear();
    } else if (c == ':' && depth_ == 1) {
      in_name_ = false;
    } else if (c == ',' && depth_ == 1) {
      in_name_ = true;
      named_ = false;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      over_ = --depth_ == 0;
    }
    return 1;
  }

  enum class Escape { kNone, kBegun, kUnicode };

  MethodJudge judge_;
  std::optional<OutgoingRefusal> refusal_;
  size_t depth_ = 0;
  bool over_ = false;  // The document has ended, or is no object.
  bool in_string_ = false;
  bool in_name_ = false;  // At depth 1: in front of the colon.
  bool named_ = false;    // The member names a method, and its value is still to come.
  Escape escape_ = Escape::kNone;
  unsigned code_ = 0;
  int digits_left_ = 0;
  std::string text_;  // Decoded, no more than is needed.
};

}  // namespace

std::unique_ptr<StreamFilter> NewJsonMethodFilter(MethodJudge judge) {
  return std::make_unique<JsonMethodFilter>(std::move(judge));
}

}  // namespace gateway
