// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/named_method.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "codec/data/inflater.h"
#include "codec/text/percent.h"
#include "gateway/inspect/json_method.h"
#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

constexpr std::string_view kPairs = "x-www-form-urlencoded";
constexpr std::string_view kParts = "multipart/";

// Of a pair, undecoded: more than "_method" needs with each of its bytes as an escape.
constexpr size_t kKeyBytesMax = 64;
// Of the value of such a pair or part, undecoded: more than a method needs, likewise.
constexpr size_t kValueBytesMax = 64;
// What Rack and PHP leave out in front of a key, or make an underscore of.
constexpr std::string_view kInFront = " .[]";

// application/x-www-form-urlencoded. Some servers take ';' for '&'.
class PairsFilter final : public StreamFilter {
 public:
  explicit PairsFilter(MethodJudge judge) : judge_(std::move(judge)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    for (char c : in) {
      std::optional<OutgoingRefusal> refusal = Take(c);
      if (refusal.has_value()) return refusal;
    }
    std::optional<OutgoingRefusal> refusal = end ? Take('&') : std::nullopt;
    if (refusal.has_value()) return refusal;
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  enum class In { kKey, kMethod, kOther };

  std::optional<OutgoingRefusal> Take(char c) {
    bool pair_ends = c == '&' || c == ';';
    std::optional<OutgoingRefusal> refusal;
    if (in_ == In::kKey && (pair_ends || c == '=')) {
      bool names = KeyNamesMethod();
      in_ = names ? In::kMethod : In::kOther;
      if (!pair_ends) return std::nullopt;
    }
    if (in_ == In::kMethod && pair_ends) {
      bool whole = value_.size() <= kValueBytesMax;
      refusal = judge_(whole ? MethodOf(codec::FormDecode(value_)) : "");
      value_.clear();
    }
    if (pair_ends) {
      in_ = In::kKey;
    } else if (in_ == In::kKey) {
      TakeOfKey(c);
    } else if (in_ == In::kMethod && value_.size() <= kValueBytesMax) {
      value_ += c;
    }
    return refusal;
  }

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

  MethodJudge judge_;
  In in_ = In::kKey;
  bool marked_ = false;  // A dot or a bracket stood in front.
  std::string key_;      // Undecoded, without what stands in front.
  std::string value_;    // Undecoded.
};

// multipart/* (RFC 7578, RFC 2046). Whatever follows a delimiter, wherever that stands, is taken
// for the fields of a part: readers differ about lines, and none finds a part where there is no
// delimiter.
class PartsFilter final : public StreamFilter {
 public:
  PartsFilter(std::string delimiter, MethodJudge judge)
      : delimiter_(std::move(delimiter)), judge_(std::move(judge)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    for (std::string_view rest = in; !rest.empty();) {
      size_t taken = in_fields_ ? TakeFields(rest) : FindDelimiter(rest);
      rest.remove_prefix(taken);
      if (refusal_.has_value()) return std::move(refusal_);
    }
    if (end && (in_value_ || (in_fields_ && FieldsNameMethod()))) refusal_ = judge_("");
    if (refusal_.has_value()) return std::move(refusal_);
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
    if (in_value_) {
      if (std::min(at, held_.size()) > kValueBytesMax + delimiter_.size()) {
        refusal_ = judge_("");
        in_value_ = false;
      } else if (at == std::string::npos) {
        return in.size();
      } else {
        EndValue(std::string_view(held_).substr(0, at));
      }
    }
    if (at == std::string::npos) {
      held_.erase(0, held_.size() - std::min(held_.size(), delimiter_.size() - 1));
      return in.size();
    }
    size_t end = at + delimiter_.size();
    held_.clear();
    in_fields_ = true;
    return end - before;
  }

  void EndValue(std::string_view value) {
    if (value.ends_with('\n')) value.remove_suffix(1);
    if (value.ends_with('\r')) value.remove_suffix(1);
    refusal_ = judge_(MethodOf(value));
    in_value_ = false;
  }

  // Up to the empty line behind the fields.
  size_t TakeFields(std::string_view in) {
    for (size_t i = 0; i < in.size(); ++i) {
      held_ += in[i];
      bool last = held_.starts_with("--") || held_.ends_with("\n\n") || held_.ends_with("\n\r\n");
      bool names = last && FieldsNameMethod();
      if (held_.size() > kPartFieldsBytesMax || (names && !ValueIsPlain())) refusal_ = judge_("");
      if (refusal_.has_value()) return i + 1;
      if (!last) continue;
      in_value_ = names;
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

  // Whether every reader takes what follows as it stands: nothing is said about it but its name.
  bool ValueIsPlain() const {
    std::string_view fields = held_;
    fields.remove_prefix(std::min(fields.find_first_not_of("\r\n"), fields.size()));
    size_t line_end = std::min(fields.find_first_of("\r\n"), fields.size());
    bool alone = fields.find_first_not_of("\r\n", line_end) == std::string_view::npos;
    constexpr std::string_view kDisposition = "content-disposition:";
    return alone && ascii::LowerCase(fields.substr(0, kDisposition.size())) == kDisposition &&
           fields.substr(0, line_end).find('*') == std::string_view::npos;
  }

  std::string delimiter_;
  MethodJudge judge_;
  std::optional<OutgoingRefusal> refusal_;
  std::string
      held_;  // Of fields, and of a value that is a method, all so far; else less than a delimiter.
  bool in_fields_ = false;
  bool in_value_ = false;
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
  explicit RefusingFilter(MethodJudge judge) : judge_(std::move(judge)) {}
  std::optional<OutgoingRefusal> Filter(std::string_view in, bool, std::string& out) override {
    std::optional<OutgoingRefusal> refusal = judge_("");
    if (!refusal.has_value()) out.append(in);
    return refusal;
  }
  bool keeps_length() const override { return true; }

 private:
  MethodJudge judge_;
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

// JSON is UTF-8 (RFC 8259, 8.1), but Express decodes whatever Unicode the type says.
std::unique_ptr<StreamFilter> NewJsonFilter(const std::vector<std::string_view>& types,
                                            const MethodJudge& judge) {
  constexpr std::string_view kCharset = "charset";
  bool plain = std::all_of(types.begin(), types.end(), [&](std::string_view type) {
    std::string lower = ascii::LowerCase(type);
    size_t at = lower.find(kCharset);
    if (at == std::string::npos) return true;
    if (lower.find(kCharset, at + 1) != std::string::npos) return false;
    std::string said = lower.substr(at + kCharset.size());
    return said == "=utf-8" || said == "=\"utf-8\"" || said.starts_with("=utf-8;");
  });
  if (!plain) return std::make_unique<RefusingFilter>(judge);
  return NewJsonMethodFilter(judge);
}

// A body that is compressed: most servers undo that before they look for a method.
class InflatingFilter final : public StreamFilter {
 public:
  InflatingFilter(std::unique_ptr<StreamFilter> inner, MethodJudge judge)
      : inner_(std::move(inner)), judge_(std::move(judge)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    taken_ += in.size();
    std::string_view rest = in;
    std::string piece(kPieceBytes, '\0');
    size_t got = piece.size();
    while (!ended_ && (!rest.empty() || got == piece.size())) {
      using Progress = codec::Inflater::Progress;
      Progress progress = inflater_.Inflate(rest, piece.data(), piece.size(), got);
      given_ += got;
      ended_ = progress == Progress::kEnded;
      std::optional<OutgoingRefusal> refusal = Ask(std::string_view(piece).substr(0, got), false);
      if (refusal.has_value()) return refusal;
      bool bomb = given_ > kInflatedBytesFree && given_ / kInflatedPerByteMax > taken_;
      if (progress == Progress::kBad || bomb) return judge_("");
    }
    if (!rest.empty()) return judge_("");  // To some readers a second member goes on.
    std::optional<OutgoingRefusal> refusal = end ? Ask({}, true) : std::nullopt;
    if (refusal.has_value()) return refusal;
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  static constexpr size_t kPieceBytes = 16384;

  std::optional<OutgoingRefusal> Ask(std::string_view piece, bool end) {
    std::string dropped;
    return inner_->Filter(piece, end, dropped);
  }

  codec::Inflater inflater_{codec::Inflater::Format::kZlibOrGzip};
  std::unique_ptr<StreamFilter> inner_;
  MethodJudge judge_;
  bool ended_ = false;
  size_t taken_ = 0;
  size_t given_ = 0;
};

// In lower case, without "identity".
std::vector<std::string> CodingsOf(const codec::HttpFields& fields) {
  std::vector<std::string> codings;
  for (std::string_view value : ValuesOf(fields, "content-encoding")) {
    std::string coding = ascii::LowerCase(value);
    if (coding != "identity") codings.push_back(std::move(coding));
  }
  return codings;
}

// Behind whatever the body is compressed by.
std::unique_ptr<StreamFilter> Behind(const std::vector<std::string>& codings,
                                     std::unique_ptr<StreamFilter> filter,
                                     const MethodJudge& judge) {
  if (codings.empty()) return filter;
  bool known = codings[0] == "gzip" || codings[0] == "x-gzip" || codings[0] == "deflate";
  if (codings.size() > 1 || !known) return std::make_unique<RefusingFilter>(judge);
  return std::make_unique<InflatingFilter>(std::move(filter), judge);
}

std::unique_ptr<StreamFilter> NewPartsFilter(const std::vector<std::string_view>& types,
                                             const MethodJudge& judge) {
  std::string delimiter = types.size() == 1 ? DelimiterOf(types[0]) : "";
  if (delimiter.empty()) return std::make_unique<RefusingFilter>(judge);
  return std::make_unique<PartsFilter>(std::move(delimiter), judge);
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

std::string MethodOf(std::string_view value) {
  constexpr size_t kMethodBytesMax = 16;
  bool plain = value.size() <= kMethodBytesMax &&
               std::all_of(value.begin(), value.end(), [](char c) { return ascii::IsAlpha(c); });
  return plain ? ascii::UpperCase(value) : "";
}

std::vector<std::unique_ptr<StreamFilter>> NewMethodFilters(const codec::HttpFields& fields,
                                                            const MethodJudge& judge) {
  std::vector<std::string_view> types = ValuesOf(fields, "content-type");
  bool said = std::any_of(types.begin(), types.end(), [](std::string_view type) {
    return type.find('/') != std::string_view::npos;
  });
  // More than one where a type mentions them: which a server believes, nobody knows.
  std::vector<std::unique_ptr<StreamFilter>> filters;
  bool parts = Mentions(types, kParts);
  if (parts) filters.push_back(NewPartsFilter(types, judge));
  if (!said || (!parts && Mentions(types, kPairs))) {
    filters.push_back(std::make_unique<PairsFilter>(judge));
  }
  if (Mentions(types, "json")) filters.push_back(NewJsonFilter(types, judge));
  std::vector<std::string> codings = CodingsOf(fields);
  for (auto& filter : filters) filter = Behind(codings, std::move(filter), judge);
  return filters;
}

}  // namespace gateway
