// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_forms.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/ascii.h"
#include "codec/text/json_escape.h"
#include "codec/text/percent.h"
#include "codec/text/utf8.h"

namespace gateway {
namespace {

// "=\n" and "=2D" undone (RFC 2045, 6.7).
std::string UndoQuotedPrintable(std::string_view in) {
  std::string out;
  for (size_t i = 0; i < in.size(); ++i) {
    const std::string_view rest = in.substr(i);
    if (rest.starts_with("=\r\n") || rest.starts_with("=\n")) {
      i += rest.starts_with("=\n") ? 1 : 2;
    } else if (rest.size() > 2 && rest[0] == '=' && ascii::HexValue(rest[1]) >= 0 &&
               ascii::HexValue(rest[2]) >= 0) {
      out += static_cast<char>(ascii::HexValue(rest[1]) * 16 + ascii::HexValue(rest[2]));
      i += 2;
    } else {
      out += in[i];
    }
  }
  return out;
}

// Returns `in` around its escapes, undone; they begin with `sign`.
std::string UndoAround(std::string_view in, char sign,
                       const std::function<bool(std::string_view)>& is_escape,
                       const std::function<std::string(std::string_view)>& undo) {
  constexpr size_t kAround = 200;
  std::string out;
  size_t begin = 0;
  size_t end = 0;  // Nothing was found yet.
  for (size_t at = in.find(sign); at != std::string_view::npos; at = in.find(sign, at + 1)) {
    if (!is_escape(in.substr(at + 1))) continue;
    const size_t from = at > kAround ? at - kAround : 0;
    if (end > 0 && from > end) out += undo(in.substr(begin, end - begin)) + "\n";
    if (end == 0 || from > end) begin = from;
    size_t last = at + 1;
    while (in.substr(last, 2) == "25") last += 2;  // "%252541": an escape within escapes.
    end = std::min(in.size(), last + kAround);
  }
  if (end > 0) out += undo(in.substr(begin, end - begin));
  return out;
}

bool BeginsWithByte(std::string_view in) {
  return in.size() > 1 && ascii::HexValue(in[0]) >= 0 && ascii::HexValue(in[1]) >= 0;
}

// Returns the name and the value of an item; the name is empty if it has none.
std::pair<std::string, std::string_view> SplitItem(std::string_view item) {
  constexpr size_t kNameMax = 32;
  constexpr std::string_view kAroundValue = " \t\r\"'[]{}";
  const auto trimmed = [&](std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(kAroundValue), text.size());
    text.remove_prefix(begin);
    return text.substr(0, text.find_last_not_of(kAroundValue) + 1);
  };
  item = trimmed(item);
  size_t sign = item.find_first_of("=:");
  // A name in quotes may have the sign; and Base64 ends with it.
  const size_t quoted = item.find("\":");
  if (quoted != std::string_view::npos) sign = quoted + 1;
  if (sign == std::string_view::npos || item.find_first_not_of('=', sign) == std::string_view::npos)
    return {"", item};
  std::string name;
  for (const char c : item.substr(0, std::min(sign, kNameMax))) {
    if (!ascii::IsDigit(c)) name += c;
  }
  return {name, trimmed(item.substr(sign + 1))};
}

}  // namespace

std::string Skeleton(std::string_view bytes, bool beyond_ascii) {
  std::string out;
  out.reserve(bytes.size());
  const auto last = [&] { return out.empty() ? 0 : static_cast<unsigned char>(out.back()); };
  for (const char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      if (ascii::IsAlphanumeric(c)) out += ascii::ToLower(c);
      continue;
    }
    if (!beyond_ascii) continue;
    // Capitals of two bytes in UTF-8: Latin (U+00C0), Greek (U+0391) and Cyrillic (U+0400).
    const bool latin = last() == 0xc3 && byte < 0x9f && byte != 0x97;
    const bool greek = last() == 0xce && byte > 0x90 && byte < 0xaa;
    const bool cyrillic = last() == 0xd0 && byte < 0xb0;
    if (latin || (greek && byte < 0xa0) || (cyrillic && byte > 0x8f && byte < 0xa0)) {
      byte = static_cast<unsigned char>(byte + 0x20);
    } else if (greek || cyrillic) {
      ++out.back();
      byte = static_cast<unsigned char>(cyrillic && byte < 0x90 ? byte + 0x10 : byte - 0x20);
    }
    out += static_cast<char>(byte);
  }
  return out;
}

std::string Backwards(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const bool beyond = static_cast<unsigned char>(text[0]) >= 0x80;
    const std::string_view character = text.substr(0, beyond ? codec::NextUtf8(text).bytes : 1);
    out.append(character.rbegin(), character.rend());
    text.remove_prefix(character.size());
  }
  return {out.rbegin(), out.rend()};
}

Values JoinValues(std::string_view in) {
  constexpr size_t kNumberMax = 3;
  Values values;
  std::map<std::string, std::string> groups;
  while (!in.empty()) {
    const std::string_view item = in.substr(0, in.find_first_of("&,;\n{"));
    in.remove_prefix(std::min(in.size(), item.size() + 1));
    auto [name, value] = SplitItem(item);
    if (value.empty()) continue;
    const bool number = value.size() <= kNumberMax && ascii::IsNumber(value);
    values.all.append(value).append(number ? " " : "");
    if (name.empty() && value.starts_with("--")) continue;  // Between a form's parts.
    groups[name].append(value).append(number ? " " : "");
  }
  for (const auto& [name, joined] : groups) values.by_name.append(joined).append("\n");
  return values;
}

std::string WithoutPlaces(std::string_view in) {
  constexpr size_t kPlaceDigitsMin = 6;
  std::string out;
  while (!in.empty()) {
    std::string_view line = in.substr(0, in.find('\n'));
    in.remove_prefix(std::min(in.size(), line.size() + 1));
    const size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
    if (digits >= kPlaceDigitsMin) line.remove_prefix(digits);
    out += line;
  }
  return out;
}

// Returns how many bytes do not belong to a text.
size_t CountUnreadable(std::string_view in) {
  constexpr std::string_view kOfText("\0\b\t\n\f\r\x1b", 7);
  size_t count = 0;
  for (size_t i = 0; i < in.size();) {
    if (static_cast<unsigned char>(in[i]) < 0x80) {
      if (ascii::IsControl(in[i]) && kOfText.find(in[i]) == std::string_view::npos) ++count;
      ++i;
      continue;
    }
    const codec::Utf8Character character = codec::NextUtf8(in.substr(i));
    if (!character.valid || character.value < 0xa0) ++count;
    i += character.bytes;
  }
  return count;
}

bool IsReadable(std::string_view bytes) {
  constexpr size_t kCharacterBytesMax = 4;
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) bytes.remove_prefix(2);
  for (size_t i = 1; i < kCharacterBytesMax && !bytes.empty() && (bytes[0] & 0xc0) == 0x80; ++i) {
    bytes.remove_prefix(1);
  }
  const size_t invalid = codec::FindInvalidUtf8(bytes);
  if (invalid != std::string_view::npos && invalid + kCharacterBytesMax <= bytes.size())
    return false;
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    constexpr std::string_view kOfText("\0\b\t\n\f\r\x1b", 7);
    return ascii::IsControl(c) && kOfText.find(c) == std::string_view::npos;
  });
}

std::vector<Undone> UndoText(std::string_view bytes) {
  constexpr size_t kUnreadableMin = 12;
  std::vector<Undone> out;
  // Other bytes than text are some of `share`; "=10" is in many forms, and not quoted-printable.
  const auto add = [&](std::string text, size_t share) {
    if (text.empty()) return;
    const size_t unreadable = CountUnreadable(text);
    const bool hides = unreadable >= kUnreadableMin && unreadable * share >= text.size();
    out.push_back({std::move(text), hides});
  };
  add(UndoAround(bytes, '%', BeginsWithByte, codec::PercentDecode), 24);
  const auto escapes = [](std::string_view in) {
    return !in.empty() && std::string_view("\"\\/bfnrtu").find(in[0]) != std::string_view::npos;
  };
  add(UndoAround(bytes, '\\', escapes, codec::JsonUnescape), 24);
  const auto quotes = [](std::string_view in) {
    return in.starts_with("\n") || in.starts_with("\r\n") || BeginsWithByte(in);
  };
  add(UndoAround(bytes, '=', quotes, UndoQuotedPrintable), 6);
  return out;
}

}  // namespace gateway
