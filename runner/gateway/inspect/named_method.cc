// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/named_method.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "codec/data/inflater.h"
#include "codec/text/percent.h"
#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

// The bytes of a key that are kept: more than is looked for.
constexpr size_t kKeyBytesMax = 32;
// The characters that Rack and PHP leave out in front of a key, or make an underscore of.
constexpr std::string_view kInFront = " .[]";

bool IsOneOf(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

// The spellings of a key, by media type: the pairs of a form, the fields of a part (RFC 7578),
// JSON.
enum class Spelling { kPairs, kParts, kJson };

// Finds a key that names a method, with its escapes undone. It does not follow the structure of the
// document, in which readers differ: a key counts at any depth, and in the content of a part.
class KeyScanner {
 public:
  explicit KeyScanner(Spelling spelling) : spelling_(spelling) {}

  // Returns whether such a key ended in the next bytes; with `end`, also one that the body ends in.
  bool Find(std::string_view in, bool end) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (Take(in[i])) return true;
      // The rest of a text that is longer than any key: most of what a model is told.
      bool skip =
          key_.size() == kKeyBytesMax && spelling_ == Spelling::kJson && escape_.empty() && !named_;
      while (skip && i + 1 < in.size() && in[i + 1] != '"' && in[i + 1] != '\\') ++i;
    }
    return end && spelling_ != Spelling::kJson && TakePlain('&');
  }

 private:
  bool Take(char c) {
    if (named_ && !IsOneOf(c, " \t\r\n")) {
      // Nothing else follows a value. Before the colon, Ruby's json reads comments, and Oj a form
      // feed.
      if (!IsOneOf(c, ",]}\"")) return true;
      named_ = false;
    }
    if (escape_.empty() && c != (spelling_ == Spelling::kJson ? '\\' : '%')) return TakePlain(c);
    escape_ += c;
    return spelling_ == Spelling::kJson ? TakeJsonEscape(c) : TakePercentEscape(c);
  }

  bool TakePercentEscape(char c) {
    constexpr size_t kEscapeBytes = 3;
    if (escape_.size() > 1 && ascii::HexValue(c) < 0) {
      escape_.pop_back();
      for (char plain : std::exchange(escape_, {})) Keep(plain);
      return Take(c);
    }
    if (escape_.size() < kEscapeBytes) return false;
    for (char decoded : codec::PercentDecode(std::exchange(escape_, {}))) Keep(decoded);
    return false;
  }

  bool TakeJsonEscape(char c) {
    constexpr size_t kEscapeBytes = 6;
    if (escape_.size() < 2) return false;
    if (escape_[1] != 'u') {
      Keep(c);
    } else if (escape_.size() > 2 && ascii::HexValue(c) < 0) {  // Of a comment, for instance.
      Keep('?');
      escape_.clear();
      return Take(c);
    } else if (escape_.size() < kEscapeBytes) {
      return false;
    } else {
      int code = 0;
      for (char digit : escape_.substr(2)) code = code * 16 + ascii::HexValue(digit);
      Keep(code > 0 && code < 0x80 ? static_cast<char>(code) : '?');
    }
    escape_.clear();
    return false;
  }

  // A character that is not escaped.
  bool TakePlain(char c) {
    switch (spelling_) {
      case Spelling::kPairs:
        return TakeOfPairs(c);
      case Spelling::kParts:
        return TakeOfParts(c);
      case Spelling::kJson:
        return TakeOfJson(c);
    }
    return true;
  }

  // Some servers take ';' for '&'.
  bool TakeOfPairs(char c) {
    if (!IsOneOf(c, "&;=")) {
      Keep(c == '+' ? ' ' : c);
      return false;
    }
    bool names = before_ != '=' && EndKey(true);
    key_.clear();
    before_ = c;
    return names;
  }

  // Takes the name of a part, in whatever way it is quoted: name="_method", name="\_method",
  // name*=utf-8''_method. Rack takes a Content-ID for a name, too; "name*0" goes on elsewhere, and
  // Tomcat decodes name="=?utf-8?B?X21ldGhvZA==?=" (RFC 2047).
  bool TakeOfParts(char c) {
    if (c == '\\') return false;
    if (name_ == Name::kEquals && c == '?') return true;
    if (ascii::IsAlphanumeric(c) || IsOneOf(c, "_-.[]") || c == '\0') {
      if (name_ != Name::kValue) name_ = Name::kElsewhere;
      Keep(c);
      return false;
    }
    bool blank = IsOneOf(c, " \t\r\n\"");
    if (blank && key_.empty()) {
      if (name_ == Name::kEquals) name_ = Name::kElsewhere;
      return false;
    }
    bool is_name = ascii::LowerCase(key_) == "name";
    bool in_value = name_ == Name::kValue;
    if (c == '=' && (is_name || name_ == Name::kEnded)) {
      name_ = Name::kValue;
    } else if (c == '=' && name_ != Name::kElsewhere) {
      name_ = Name::kEquals;
    } else {
      name_ = is_name && blank ? Name::kEnded : Name::kElsewhere;
    }
    bool names = EndKey(in_value) && IsOneOf(before_, "=':");
    before_ = c;
    return names || (is_name && c == '*');
  }

  bool TakeOfJson(char c) {
    if (c == '"') {
      named_ = EndKey(false);
    } else {
      Keep(c);
    }
    return false;
  }

  void Keep(char c) {
    if (key_.empty() && IsOneOf(c, kInFront)) {
      marked_ = marked_ || c == '.' || c == '[';
    } else if (key_.size() < kKeyBytesMax) {
      key_ += c;
    }
  }

  // Where `is_field`, the key may also be the name of a header field that names a method: ASP.NET
  // looks for one in forms, too.
  bool EndKey(bool is_field) {
    bool names =
        NamesMethod((marked_ ? "[" : "") + key_) && (is_field || !codec::StandsForMethod(key_));
    key_.clear();
    marked_ = false;
    return names;
  }

  Spelling spelling_;
  std::string escape_;   // The bytes of an escape so far.
  std::string key_;      // Without what stands in front.
  bool marked_ = false;  // A dot or a bracket stood in front.
  char before_ = '&';    // The character that ended the key before this one.
  bool named_ = false;   // JSON: this text names a method, unless it is a value.
  // Parts: behind "name" and blanks; in the first word behind "name="; behind a '=' in that.
  enum class Name { kElsewhere, kEnded, kValue, kEquals };
  Name name_ = Name::kElsewhere;
};

// Refuses a body in which a key names a method, before its last byte has gone.
class KeyFilter final : public StreamFilter {
 public:
  KeyFilter(Spelling spelling, OutgoingRefusal refusal)
      : scanner_(spelling), refusal_(std::move(refusal)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    if (scanner_.Find(in, end)) return refusal_;
    out.append(in);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  KeyScanner scanner_;
  OutgoingRefusal refusal_;
};

// Refuses a body that cannot be read here, though some servers may.
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

// All fields of that name: which of two a server uses cannot be known.
std::vector<std::string_view> ValuesOf(const codec::HttpFields& fields, std::string_view name) {
  std::vector<std::string_view> values;
  for (const codec::HttpField& field : fields) {
    if (codec::MayBeReadAs(field.name, name)) values.push_back(field.value);
  }
  return values;
}

bool Mentions(const std::vector<std::string_view>& values, std::string_view what) {
  return std::any_of(values.begin(), values.end(), [&](std::string_view value) {
    return ascii::LowerCase(value).find(what) != std::string::npos;
  });
}

// Returns whether all charsets that the types name are among `known`, in the usual spelling.
bool AreIn(std::span<const std::string_view> known, const std::vector<std::string_view>& types) {
  constexpr std::string_view kCharset = "charset";
  return std::all_of(types.begin(), types.end(), [&](std::string_view type) {
    std::string lower = ascii::LowerCase(type);
    size_t at = lower.find(kCharset);
    if (at == std::string::npos) return true;
    if (lower.find(kCharset, at + 1) != std::string::npos) return false;
    std::string said = lower.substr(at + kCharset.size());
    return std::any_of(known.begin(), known.end(), [&](std::string_view name) {
      std::string plain = "=" + std::string(name);
      return said == plain || said == "=\"" + std::string(name) + "\"" ||
             said.starts_with(plain + ";") || said.starts_with("=\"" + std::string(name) + "\";");
    });
  });
}

// JSON is UTF-8 (RFC 8259, 8.1), but Express decodes whatever Unicode the type says. Of a form,
// servers decode keys by its charset: in these, "_method" is spelled as in ASCII.
constexpr std::array<std::string_view, 1> kJsonCharsets = {"utf-8"};
constexpr std::array<std::string_view, 5> kFormCharsets = {"utf-8", "utf8", "us-ascii",
                                                           "iso-8859-1", "windows-1252"};

// A body that is compressed: most servers undo that before they look for a method.
class InflatingFilter final : public StreamFilter {
 public:
  InflatingFilter(std::unique_ptr<StreamFilter> inner, OutgoingRefusal refusal)
      : inner_(std::move(inner)), refusal_(std::move(refusal)) {}

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
      if (progress == Progress::kBad || bomb) return refusal_;
    }
    if (!rest.empty()) return refusal_;  // Some readers go on with a second member.
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
  OutgoingRefusal refusal_;
  bool ended_ = false;
  size_t taken_ = 0;
  size_t given_ = 0;
};

// Behind whatever the body is compressed by.
std::unique_ptr<StreamFilter> Behind(const std::vector<std::string>& codings,
                                     std::unique_ptr<StreamFilter> filter,
                                     const OutgoingRefusal& refusal) {
  if (codings.empty()) return filter;
  bool known = codings[0] == "gzip" || codings[0] == "x-gzip" || codings[0] == "deflate";
  if (codings.size() > 1 || !known) return std::make_unique<RefusingFilter>(refusal);
  return std::make_unique<InflatingFilter>(std::move(filter), refusal);
}

}  // namespace

bool NamesMethod(std::string_view key) {
  size_t start = std::min(key.find_first_not_of(kInFront), key.size());
  bool marked = key.substr(0, start).find_first_of(".[") != std::string_view::npos;
  key = key.substr(start, key.find('\0', start) - start);
  key = key.substr(0, key.find_last_not_of(" ]") + 1);
  std::string name = ascii::LowerCase(key);
  // The second is Salesforce's.
  return name == "_method" || name == "_httpmethod" || (marked && name == "method") ||
         codec::StandsForMethod(name);
}

std::vector<std::unique_ptr<StreamFilter>> NewMethodFilters(const codec::HttpFields& fields,
                                                            const OutgoingRefusal& refusal) {
  std::vector<std::string_view> types = ValuesOf(fields, "content-type");
  bool has_type = std::any_of(types.begin(), types.end(), [](std::string_view type) {
    return type.find('/') != std::string_view::npos;
  });
  // More than one where a type mentions them: servers differ in which they believe.
  std::vector<std::unique_ptr<StreamFilter>> filters;
  auto add = [&](Spelling spelling) {
    filters.push_back(std::make_unique<KeyFilter>(spelling, refusal));
  };
  if (Mentions(types, "multipart/")) add(Spelling::kParts);
  if (!has_type || Mentions(types, "x-www-form-urlencoded")) add(Spelling::kPairs);
  if (Mentions(types, "json")) add(Spelling::kJson);
  bool json = Mentions(types, "json");
  bool form = filters.size() > (json ? 1 : 0);
  if ((json && !AreIn(kJsonCharsets, types)) || (form && !AreIn(kFormCharsets, types))) {
    filters.push_back(std::make_unique<RefusingFilter>(refusal));
  }
  std::vector<std::string> codings = codec::CodingsOf(fields);
  for (auto& filter : filters) filter = Behind(codings, std::move(filter), refusal);
  return filters;
}

}  // namespace gateway
