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
// What Rack and PHP leave out in front of a key, or make an underscore of.
constexpr std::string_view kInFront = " .[]";

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
    // However much stands in front, it does not push the rest out of what is kept.
    constexpr size_t kEscapeBytes = 3;
    if (key_.size() > kEscapeBytes) return;
    std::string decoded = codec::FormDecode(key_);
    if (decoded.find_first_not_of(kInFront) != std::string::npos) return;
    marked_ = marked_ || decoded.find_first_of(".[") != std::string::npos;
    key_.clear();
  }

  bool KeyNamesMethod() {
    bool names = NamesMethod((marked_ ? "[" : "") + codec::FormDecode(key_));
    key_.clear();
    marked_ = false;
    return names;
  }

  OutgoingRefusal refusal_;
  bool in_key_ = true;
  bool marked_ = false;  // A dot or a bracket stood in front.
  std::string key_;      // Undecoded, without what stands in front.
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
  // name*=utf-8''_method. Rack takes a Content-ID for it, too; "name*0" goes on elsewhere.
  bool FieldsNameMethod() const {
    std::string bare;     // As Rack reads it: brackets around a name are none of it.
    std::string mangled;  // As PHP does: a dot or a bracket is an underscore.
    for (char c : codec::PercentDecode(held_)) {
      if (std::string_view("\\\" \t\r\n").find(c) != std::string_view::npos) continue;
      c = ascii::ToLower(c);
      if (c != '[' && c != ']') bare += c;
      mangled += c == '.' || c == '[' ? '_' : c;
    }
    for (const std::string* fields : {&bare, &mangled}) {
      for (std::string_view before : {"=", "'", ":"}) {
        if (fields->find(std::string(before) + "_method") != std::string::npos) return true;
      }
    }
    return bare.find(";name*") != std::string::npos;
  }

  std::string delimiter_;
  OutgoingRefusal refusal_;
  std::string held_;  // Of fields all so far; else less than a delimiter.
  bool in_fields_ = false;
  bool bad_ = false;
};

// "--" and the boundary of the media type; empty where it is missing, said twice, or such that two
// readers cut it differently (RFC 2046, 5.1.1 allows more: Rack ends one at a comma).
std::string DelimiterOf(std::string_view type) {
  constexpr std::string_view kName = "boundary";
  constexpr size_t kBoundaryBytesMax = 70;
  std::string lower = ascii::LowerCase(type);
  size_t at = lower.find(kName);
  if (at == std::string::npos || lower.find(kName, at + 1) != std::string::npos) return {};
  std::string_view rest = type.substr(at + kName.size());
  if (!rest.starts_with('=')) return {};
  rest.remove_prefix(1);
  bool quoted = rest.starts_with('"');
  if (quoted) rest.remove_prefix(1);
  auto plain = [](char c) {
    return ascii::IsAlphanumeric(c) || std::string_view("-_.=+").find(c) != std::string_view::npos;
  };
  auto end = std::find_if_not(rest.begin(), rest.end(), plain);
  std::string_view value = rest.substr(0, static_cast<size_t>(end - rest.begin()));
  rest.remove_prefix(value.size());
  if (quoted && !rest.starts_with('"')) return {};
  if (quoted) rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  bool ends = rest.empty() || rest.front() == ';';
  if (!ends || value.empty() || value.size() > kBoundaryBytesMax) return {};
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

// Of all fields of that name: which of two a server believes, nobody knows.
std::vector<std::string_view> ValuesOf(const codec::HttpFields& fields, std::string_view name) {
  std::vector<std::string_view> values;
  for (const codec::HttpField& field : fields) {
    if (codec::Spells(field.name, name)) values.push_back(field.value);
  }
  return values;
}

bool Mentions(const std::vector<std::string_view>& values, std::string_view what) {
  return std::any_of(values.begin(), values.end(), [&](std::string_view value) {
    return ascii::LowerCase(value).find(what) != std::string::npos;
  });
}

// Some servers undo it before they look for a method.
bool IsCompressed(const codec::HttpFields& fields) {
  std::vector<std::string_view> codings = ValuesOf(fields, "content-encoding");
  return std::any_of(codings.begin(), codings.end(), [](std::string_view coding) {
    return !codec::EqualIgnoringCase(coding, "identity");
  });
}

}  // namespace

bool NamesMethod(std::string_view key) {
  size_t start = std::min(key.find_first_not_of(kInFront), key.size());
  bool marked = key.substr(0, start).find_first_of(".[") != std::string_view::npos;
  key = key.substr(start, key.find('\0', start) - start);
  key = key.substr(0, key.find_last_not_of(" ]") + 1);
  std::string name = ascii::LowerCase(key);
  // The second is Salesforce's.
  return name == "_method" || name == "_httpmethod" || (marked && name == "method");
}

bool IsForm(const codec::HttpFields& fields) {
  std::vector<std::string_view> types = ValuesOf(fields, "content-type");
  bool said = std::any_of(types.begin(), types.end(), [](std::string_view type) {
    return type.find('/') != std::string_view::npos;
  });
  return !said || Mentions(types, kParts) || Mentions(types, kPairs);
}

std::unique_ptr<StreamFilter> NewFormMethodFilter(const codec::HttpFields& fields,
                                                  OutgoingRefusal refusal) {
  std::vector<std::string_view> types = ValuesOf(fields, "content-type");
  if (IsCompressed(fields)) return std::make_unique<RefusingFilter>(std::move(refusal));
  if (!Mentions(types, kParts)) return std::make_unique<PairsFilter>(std::move(refusal));
  std::string delimiter = types.size() == 1 ? DelimiterOf(types[0]) : "";
  if (delimiter.empty()) return std::make_unique<RefusingFilter>(std::move(refusal));
  return std::make_unique<PartsFilter>(std::move(delimiter), std::move(refusal));
}

}  // namespace gateway
