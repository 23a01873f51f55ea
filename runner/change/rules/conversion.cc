// SPDX-License-Identifier: Apache-2.0
#include "change/rules/conversion.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/ascii.h"
#include "codec/data/digest.h"
#include "codec/text/utf8.h"

namespace change {
namespace {

constexpr size_t kPointerBytesMax = 1024;  // The bound of git-lfs.
constexpr std::string_view kPointerStart = "version https://git-lfs.github.com/spec/v1\n";
constexpr std::string_view kIdent = "$Id";

// The characters that git counts to distinguish text from binary (its gather_stats()).
struct TextSigns {
  int64_t crlf = 0;
  int64_t lone_cr = 0;
  int64_t lone_lf = 0;
  int64_t nul = 0;
  int64_t printable = 0;
  int64_t unprintable = 0;

  bool binary() const { return lone_cr > 0 || nul > 0 || printable / 128 < unprintable; }
};

TextSigns SignsOf(std::string_view bytes) {
  TextSigns signs;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char c = bytes[i];
    if (c == '\r') {
      bool pair = i + 1 < bytes.size() && bytes[i + 1] == '\n';
      ++(pair ? signs.crlf : signs.lone_cr);
      if (pair) ++i;
    } else if (c == '\n') {
      ++signs.lone_lf;
    } else if (c == '\0') {
      ++signs.nul;
      ++signs.unprintable;
    } else if (ascii::IsControl(c) && c != '\b' && c != '\t' && c != '\f' && c != '\033') {
      ++signs.unprintable;
    } else {
      ++signs.printable;
    }
  }
  if (bytes.ends_with('\032')) --signs.unprintable;  // The end of file of DOS.
  return signs;
}

std::string WithLf(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bool pair = bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n';
    if (!pair) text += bytes[i];
  }
  return text;
}

std::string WithCrlf(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 16);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')) text += '\r';
    text += bytes[i];
  }
  return text;
}

// Copies `bytes`, with `write` of each keyword, "$Id$" or "$Id: ...$" in one line: it is given what
// stands between "$Id" and the last "$", and leaves alone what it gives nothing for.
template <typename Write>
std::string ReplaceIdents(std::string_view bytes, Write write) {
  std::string text;
  for (;;) {
    size_t start = bytes.find(kIdent);
    if (start == std::string_view::npos) break;
    start += kIdent.size();
    text += bytes.substr(0, start);
    bytes.remove_prefix(start);
    if (bytes.empty() || (bytes.front() != '$' && bytes.front() != ':')) continue;
    size_t end = bytes.find_first_of("$\n");
    if (end == std::string_view::npos || bytes[end] == '\n') continue;
    std::optional<std::string> written = write(bytes.substr(0, end));
    if (!written) continue;
    (text += *written) += '$';
    bytes.remove_prefix(end + 1);
  }
  return text += bytes;
}

std::string WithoutIdents(std::string_view bytes) {
  return ReplaceIdents(bytes, [](std::string_view) { return std::optional<std::string>(""); });
}

std::string WithIdents(std::string_view bytes, const std::string& blob_id) {
  return ReplaceIdents(bytes, [&](std::string_view value) {
    // Blanks within are another system's keyword, which git leaves alone.
    bool foreign =
        value.size() > 2 && value.substr(2, value.size() - 3).find(' ') != std::string_view::npos;
    return foreign ? std::nullopt : std::optional<std::string>(": " + blob_id + " ");
  });
}

struct Utf16 {
  enum class Mark { kRequired, kForbidden, kWritten };
  bool little = true;
  Mark mark = Mark::kRequired;
};

std::optional<Utf16> Utf16Of(std::string_view encoding) {
  using Mark = Utf16::Mark;
  static constexpr std::array<std::pair<std::string_view, Utf16>, 5> kForms = {{
      {"UTF-16", {true, Mark::kRequired}},  // Written as glibc's iconv does on these machines.
      {"UTF-16LE", {true, Mark::kForbidden}},
      {"UTF-16BE", {false, Mark::kForbidden}},
      {"UTF-16LE-BOM", {true, Mark::kWritten}},
      {"UTF-16BE-BOM", {false, Mark::kWritten}},
  }};
  for (const auto& [name, form] : kForms) {
    if (name == encoding) return form;
  }
  return std::nullopt;
}

Error NotEncoded(std::string_view encoding, std::string_view why) {
  return Error{Code::kInvalid,
               "not " + std::string(encoding) + ", as its attributes say: " + std::string(why)};
}

Result<std::string> FromUtf16(std::string_view encoding, Utf16 form, std::string_view bytes) {
  bool marked_little = bytes.starts_with("\xff\xfe");
  bool marked = marked_little || bytes.starts_with("\xfe\xff");
  if (form.mark == Utf16::Mark::kForbidden && marked) {
    return NotEncoded(encoding, "it has a byte order mark");
  }
  if (form.mark != Utf16::Mark::kForbidden && !marked) {
    return NotEncoded(encoding, "it has no byte order mark");
  }
  bool little = marked ? marked_little : form.little;
  if (marked) bytes.remove_prefix(2);
  if (bytes.size() % 2 != 0) return NotEncoded(encoding, "a byte is left over");
  std::string text;
  auto unit = [&](size_t at) {
    auto first = static_cast<unsigned char>(bytes[at]);
    auto second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<uint32_t>(little ? first | second << 8 : first << 8 | second);
  };
  for (size_t at = 0; at < bytes.size(); at += 2) {
    uint32_t point = unit(at);
    if (point >= 0xd800 && point < 0xe000) {
      uint32_t low = at + 2 < bytes.size() ? unit(at + 2) : 0;
      if (point >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
        return NotEncoded(encoding, "half of a surrogate pair is missing");
      }
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    }
    codec::AppendUtf8(point, &text);
  }
  return text;
}

Result<std::string> FromUtf8(Utf16 form, std::string_view text) {
  std::string bytes;
  auto append = [&](uint32_t unit) {
    char low = static_cast<char>(unit & 0xff);
    char high = static_cast<char>(unit >> 8);
    bytes += form.little ? low : high;
    bytes += form.little ? high : low;
  };
  if (form.mark != Utf16::Mark::kForbidden) append(0xfeff);
  while (!text.empty()) {
    codec::Utf8Character next = codec::NextUtf8(text);
    if (!next.valid) return Error{Code::kInvalid, "not UTF-8, so it cannot be encoded"};
    text.remove_prefix(next.bytes);
    if (next.value >= 0x10000) {
      append(0xd800 + ((next.value - 0x10000) >> 10));
      append(0xdc00 + ((next.value - 0x10000) & 0x3ff));
    } else {
      append(next.value);
    }
  }
  return bytes;
}

Error UnknownEncoding(const std::string& encoding) {
  return Error{Code::kUnsupported, "in the working-tree-encoding " + encoding +
                                       "; only UTF-8 and UTF-16 are supported"};
}

std::string LfsPointer(std::string_view bytes) {
  return std::string(kPointerStart) + "oid sha256:" + codec::Sha256Hex(bytes) + "\nsize " +
         std::to_string(bytes.size()) + "\n";
}

// git calls "UTF16" and "utf-16" one encoding.
std::string EncodingName(std::string_view value) {
  std::string name = ascii::UpperCase(value);
  if (name.starts_with("UTF") && !name.starts_with("UTF-")) name.insert(3, "-");
  return name == "UTF-8" || name == "TRUE" || name == "FALSE" ? "" : name;
}

Conversion::Text TextOf(const std::string& value) {
  if (value == "true" || value == "input") return Conversion::Text::kYes;
  return value == "auto" ? Conversion::Text::kGuessed : Conversion::Text::kNo;
}

}  // namespace

Conversion DecideConversion(const AttributeValues& values, AutoCrlf auto_crlf, bool native_crlf) {
  auto known = [](const std::string& value) {
    return value == "true" || value == "false" || value == "input" || value == "auto";
  };
  const std::string& text = known(values.text) ? values.text : values.crlf;
  bool has_eol = values.eol == "lf" || values.eol == "crlf";
  Conversion conversion;
  conversion.text = TextOf(text);
  if (!known(text)) {
    if (has_eol) {
      conversion.text = Conversion::Text::kYes;
    } else if (auto_crlf != AutoCrlf::kNo) {
      conversion.text = Conversion::Text::kGuessed;
    }
  }
  if (text != "input" || has_eol) {
    conversion.crlf = has_eol                         ? values.eol == "crlf"
                      : auto_crlf == AutoCrlf::kInput ? false
                                                      : auto_crlf == AutoCrlf::kYes || native_crlf;
  }
  conversion.ident = values.ident == "true";
  conversion.encoding = EncodingName(values.encoding);
  if (values.filter != "true" && values.filter != "false") conversion.driver = values.filter;
  return conversion;
}

bool IsCrlfText(std::string_view blob) {
  TextSigns signs = SignsOf(blob);
  return signs.crlf > 0 && !signs.binary();
}

bool IsLfsPointer(std::string_view bytes) {
  return bytes.size() < kPointerBytesMax && bytes.starts_with(kPointerStart);
}

Result<std::string> ToBlob(const Conversion& conversion, std::string bytes, bool crlf_in_index) {
  if (conversion.driver == kLfs && !bytes.empty() && !IsLfsPointer(bytes)) {
    bytes = LfsPointer(bytes);
  }
  if (!conversion.encoding.empty() && !bytes.empty()) {
    std::optional<Utf16> form = Utf16Of(conversion.encoding);
    if (!form) return UnknownEncoding(conversion.encoding);
    bytes = TRY(FromUtf16(conversion.encoding, *form, bytes));
  }
  if (conversion.text == Conversion::Text::kYes) {
    bytes = WithLf(bytes);
  } else if (conversion.text == Conversion::Text::kGuessed && !crlf_in_index) {
    TextSigns signs = SignsOf(bytes);
    if (signs.crlf > 0 && !signs.binary()) bytes = WithLf(bytes);
  }
  return conversion.ident ? WithoutIdents(bytes) : std::move(bytes);
}

Result<std::string> ToFile(const Conversion& conversion, std::string blob,
                           const std::string& blob_id) {
  if (conversion.ident) blob = WithIdents(blob, blob_id);
  if (conversion.text != Conversion::Text::kNo && conversion.crlf) {
    TextSigns signs = SignsOf(blob);
    bool guessed = conversion.text == Conversion::Text::kGuessed;
    bool left = guessed && (signs.lone_cr > 0 || signs.crlf > 0 || signs.binary());
    if (signs.lone_lf > 0 && !left) blob = WithCrlf(blob);
  }
  if (conversion.encoding.empty() || blob.empty()) return blob;
  std::optional<Utf16> form = Utf16Of(conversion.encoding);
  if (!form) return UnknownEncoding(conversion.encoding);
  return FromUtf8(*form, blob);
}

}  // namespace change
