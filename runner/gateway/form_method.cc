// SPDX-License-Identifier: Apache-2.0
#include "gateway/form_method.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "codec/percent.h"
#include "gateway/limits.h"

namespace gateway {
namespace {

constexpr std::string_view kPairs = "x-www-form-urlencoded";
constexpr std::string_view kParts = "multipart/";

// Of a pair, undecoded: more than "_method" needs with each of its bytes as an escape.
constexpr size_t kKeyBytesMax = 64;

// application/x-www-form-urlencoded. Some servers take ';' for '&'.
class PairsFilter final : public StreamFilter {
 public:
  explicit PairsFilter(OutgoingRefusal refusal) : refusal_(std::move(refusal)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    for (char c : in) {
      bool pair_ends = c == '&' || c == ';';
      bool key_ends = in_key_ && (pair_ends || c == '=');
      if (key_ends && KeyNamesMethod()) return refusal_;
      if (pair_ends || key_ends) {
        in_key_ = pair_ends;
      } else if (in_key_) {
        TakeOfKey(c);
      }
    }
    if (end && in_key_ && KeyNamesMethod()) return refusal_;
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  void TakeOfKey(char c) {
    if (key_.size() < kKeyBytesMax) key_ += c;
    // However many blanks stand in front, they do not push the rest out of what is kept.
    if (key_ == "+" || key_ == " " || key_ == "%20") key_.clear();
  }

  bool KeyNamesMethod() {
    bool names = NamesMethod(codec::FormDecode(key_));
    key_.clear();
    return names;
  }

  OutgoingRefusal refusal_;
  bool in_key_ = true;
  std::string key_;
};

// multipart/* (RFC 7578, RFC 2046). Whatever follows a delimiter, wherever that stands, is taken
// for the fields of a part: readers differ about lines, and none finds a part where there is no
// delimiter.
class PartsFilter final : public StreamFilter {
 public:
  PartsFilter(std::string delimiter, OutgoingRefusal refusal)
      : delimiter_(std::move(delimiter)), refusal_(std::move(refusal)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    for (std::string_view rest = in; !rest.empty();) {
      size_t taken = in_fields_ ? TakeFields(rest) : FindDelimiter(rest);
      rest.remove_prefix(taken);
      if (bad_) return refusal_;
    }
    if (end && in_fields_ && FieldsNameMethod()) return refusal_;
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  // All of `in`, or up to the end of the next delimiter.
  size_t FindDelimiter(std::string_view in) {
    size_t before = held_.size();
    held_.append(in);
    size_t at = held_.find(delimiter_);
    if (at == std::string::npos) {
      held_.erase(0, held_.size() - std::min(held_.size(), delimiter_.size() - 1));
      return in.size();
    }
    size_t end = at + delimiter_.size();
    held_.clear();
    in_fields_ = true;
    return end - before;
  }

  // Up to the empty line behind the fields.
  size_t TakeFields(std::string_view in) {
    for (size_t i = 0; i < in.size(); ++i) {
      held_ += in[i];
      bool last = held_.starts_with("--") || held_.ends_with("\n\n") || held_.ends_with("\n\r\n");
      bad_ = held_.size() > kPartFieldsBytesMax || (last && FieldsNameMethod());
      if (bad_) return i + 1;
      if (!last) continue;
      held_.clear();
      in_fields_ = false;
      return i + 1;
    }
    return in.size();
  }

  // In whatever way the name is quoted and escaped: name="_method", name="\_method",
  // name*=utf-8''_method.
  bool FieldsNameMethod() const {
    std::string fields;
    for (char c : codec::PercentDecode(held_)) {
      if (c == '\\' || c == '"' || c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
      fields += c == '.' || c == '[' ? '_' : ascii::ToLower(c);
    }
    return fields.find("=_method") != std::string::npos ||
           fields.find("'_method") != std::string::npos;
  }

  std::string delimiter_;
  OutgoingRefusal refusal_;
  std::string held_;  // Of fields all so far; else less than a delimiter.
  bool in_fields_ = false;
  bool bad_ = false;
};

// "--" and the boundary of the media type; empty where it is missing, given twice or odd (RFC
// 2046, 5.1.1).
std::string DelimiterOf(std::string_view type) {
  constexpr std::string_view kName = "boundary=";
  std::string lower = ascii::LowerCase(type);
  size_t at = lower.find(kName);
  if (at == std::string::npos || lower.find("boundary", at + kName.size()) != std::string::npos) {
    return {};
  }
  std::string_view value = type.substr(at + kName.size());
  if (value.starts_with('"')) {
    size_t quote = value.find('"', 1);
    if (quote == std::string_view::npos) return {};
    value = value.substr(1, quote - 1);
  } else {
    value = value.substr(0, value.find_first_of("; \t,"));
  }
  constexpr size_t kBoundaryBytesMax = 70;
  bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return ascii::IsAlphanumeric(c) ||
           std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
  });
  if (value.empty() || value.size() > kBoundaryBytesMax || !plain) return {};
  return "--" + std::string(value);
}

// A body that every reader might read in another way.
class RefusingFilter final : public StreamFilter {
 public:
  explicit RefusingFilter(OutgoingRefusal refusal) : refusal_(std::move(refusal)) {}
  std::optional<OutgoingRefusal> Filter(std::string_view, bool, std::string&) override {
    return refusal_;
  }
  bool keeps_length() const override { return true; }

 private:
  OutgoingRefusal refusal_;
};

// Of all fields that say one: which of two a server believes, nobody knows.
std::vector<std::string_view> MediaTypes(const codec::HttpFields& fields) {
  std::vector<std::string_view> types;
  for (const codec::HttpField& field : fields) {
    if (codec::Spells(field.name, "content-type")) types.push_back(field.value);
  }
  return types;
}

bool Mentions(const std::vector<std::string_view>& types, std::string_view what) {
  return std::any_of(types.begin(), types.end(), [&](std::string_view type) {
    return ascii::LowerCase(type).find(what) != std::string::npos;
  });
}

}  // namespace

bool NamesMethod(std::string_view key) {
  key.remove_prefix(std::min(key.find_first_not_of(' '), key.size()));
  std::string name = ascii::LowerCase(key);
  if (!name.empty() && (name[0] == '.' || name[0] == '[')) name[0] = '_';
  return name == "_method" || name == "_httpmethod";  // The second is Salesforce's.
}

bool IsForm(const codec::HttpFields& fields) {
  std::vector<std::string_view> types = MediaTypes(fields);
  return types.empty() || Mentions(types, kParts) || Mentions(types, kPairs);
}

std::unique_ptr<StreamFilter> NewFormMethodFilter(const codec::HttpFields& fields,
                                                  OutgoingRefusal refusal) {
  std::vector<std::string_view> types = MediaTypes(fields);
  if (!Mentions(types, kParts)) return std::make_unique<PairsFilter>(std::move(refusal));
  std::string delimiter = types.size() == 1 ? DelimiterOf(types[0]) : "";
  if (delimiter.empty()) return std::make_unique<RefusingFilter>(std::move(refusal));
  return std::make_unique<PartsFilter>(std::move(delimiter), std::move(refusal));
}

}  // namespace gateway
