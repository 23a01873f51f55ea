// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_forms.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/ascii.h"
#include "codec/text/json_escape.h"
#include "codec/text/percent.h"
#include "codec/text/utf8.h"

namespace gateway {
namespace {

// Every prompt of a run passes here, a dozen times: hence tables.
using Digits = std::array<int8_t, 256>;  // -1 for what is not a digit.

template <typename Value>
constexpr Digits Tabulate(Value value) {
  Digits digits{};
  for (size_t c = 0; c < digits.size(); ++c) {
    digits[c] = static_cast<int8_t>(value(static_cast<char>(c)));
  }
  return digits;
}

constexpr int kByteBits = 8;

constexpr int Base64Value(char c) {
  if (ascii::IsUpper(c)) return c - 'A';
  if (ascii::IsLower(c)) return c - 'a' + 26;
  if (ascii::IsDigit(c)) return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

constexpr Digits kBase64 = Tabulate(Base64Value);
constexpr Digits kHex = Tabulate(ascii::HexValue);

constexpr bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns the bytes of all runs, without the first `from` digits of each. Blanks do not end a run.
std::string Decode(std::string_view in, const Digits& digits, int bits, size_t from) {
  std::string out;
  out.reserve(in.size());
  uint32_t held = 0;
  int held_bits = 0;
  size_t seen = 0;
  for (const char c : in) {
    const int digit = digits[static_cast<unsigned char>(c)];
    if (digit < 0) {
      if (!IsBlank(c)) held_bits = 0, seen = 0;
      continue;
    }
    if (seen++ < from) continue;
    held = (held << bits) | static_cast<uint32_t>(digit);
    held_bits += bits;
    if (held_bits < kByteBits) continue;
    held_bits -= kByteBits;
    out += static_cast<char>((held >> held_bits) & 0xff);
  }
  return out;
}

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

// Returns the lines with three numbers one behind the other: few texts have any.
std::string LinesOfNumbers(std::string_view in) {
  constexpr size_t kNumbersMin = 3;
  std::string out;
  while (!in.empty()) {
    const std::string_view line = in.substr(0, std::min(in.find('\n'), in.size() - 1) + 1);
    in.remove_prefix(line.size());
    size_t numbers = 0;
    bool number = false;  // The word that the last character is in.
    bool word = false;
    for (const char c : line) {
      const bool digit = kHex[static_cast<unsigned char>(c)] >= 0 || c == 'x';
      const bool separates = !ascii::IsAlphanumeric(c) && static_cast<unsigned char>(c) < 0x80;
      if (separates && word) numbers = number ? numbers + 1 : 0;
      if (numbers >= kNumbersMin) break;
      number = !separates && digit && (number || !word);
      word = !separates;
    }
    if (numbers >= kNumbersMin) out += line;
  }
  return out;
}

// The way a program prints bytes as numbers.
struct Dump {
  int base;
  bool words;     // Numbers of more than a byte are little-endian.
  bool gap_ends;  // Two blanks end a line's numbers, as in xxd; else they are only a gap.
};

// Appends the bytes of one number; returns false if it is not one.
bool TakeNumber(std::string_view digits, const Dump& dump, std::string& out) {
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  if (digits.starts_with("x")) digits.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, dump.base);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  size_t bytes = dump.base == 16 ? digits.size() / 2 : digits.size() <= 3 ? 1 : 2;
  if (dump.base == 16 && (digits.size() % 2 != 0 || digits.size() > 16)) return false;
  if (dump.base != 16 && (digits.size() > 6 || number >> (kByteBits * bytes) != 0)) return false;
  for (size_t i = 0; i < bytes; ++i) {
    const size_t at = dump.words ? i : bytes - 1 - i;
    out += static_cast<char>((number >> (kByteBits * at)) & 0xff);
  }
  return true;
}

// Takes one line, without the place in the file that it begins with and the text that it ends with.
void TakeLine(std::string_view line, const Dump& dump, std::string& out) {
  constexpr size_t kPlaceDigitsMin = 6;
  const std::string_view separators = " \t\r,;:[](){}\"'\\";
  size_t place_size = 0;
  std::string place;  // The bytes of the first word, until the second one says what it is.
  size_t words = 0;
  while (!line.empty()) {
    const size_t begin = std::min(line.find_first_not_of(separators), line.size());
    if (dump.gap_ends && words > 1 && begin > 1) return;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(separators));
    if (word.empty()) return;
    line.remove_prefix(word.size());
    std::string bytes;
    const bool number = TakeNumber(word, dump, bytes);
    ++words;
    if (words == 1 && word.size() >= kPlaceDigitsMin) {
      if (line.starts_with(':')) continue;  // xxd's.
      place_size = word.size();
      place = std::move(bytes);
      continue;
    }
    // A place has another length than the numbers.
    if (words == 2 && place_size == word.size()) out += place;
    if (!number && words > 2) return;
    out += bytes;
  }
  if (words == 1) out += place;
}

std::string UndoDump(std::string_view in, const Dump& dump) {
  std::string out;
  while (!in.empty()) {
    const std::string_view line = in.substr(0, in.find('\n'));
    in.remove_prefix(std::min(in.size(), line.size() + 1));
    TakeLine(line, dump, out);
  }
  return out;
}

// Returns whether the digits are as mixed as those of arbitrary bytes; names and paths are not.
bool LooksRandom(std::string_view run, bool hex) {
  const auto count = [&](bool (*is)(char)) {
    return static_cast<size_t>(std::count_if(run.begin(), run.end(), is));
  };
  const size_t numbers = count([](char c) { return ascii::IsDigit(c); });
  const size_t upper = count([](char c) { return ascii::IsUpper(c); });
  const size_t lower = count([](char c) { return ascii::IsLower(c); });
  if (hex) return numbers * 4 >= run.size() && (upper + lower) * 8 >= run.size();
  return numbers * 20 >= run.size() && upper * 8 >= run.size() && lower * 8 >= run.size();
}

}  // namespace

std::string Skeleton(std::string_view bytes) {
  static constexpr Digits kDropped = Tabulate([](char c) {
    return ascii::IsAlphanumeric(c) || static_cast<unsigned char>(c) >= 0x80 ? 0 : -1;
  });
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (kDropped[static_cast<unsigned char>(c)] == 0) out += ascii::ToLower(c);
  }
  return out;
}

std::string JoinValues(std::string_view in) {
  std::string out;
  while (!in.empty()) {
    std::string_view item = in.substr(0, in.find_first_of("&,;\n{"));
    in.remove_prefix(std::min(in.size(), item.size() + 1));
    const size_t sign = item.find_first_of("=:");
    if (sign != std::string_view::npos) item.remove_prefix(sign + 1);
    out += item;
  }
  return out;
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

std::vector<std::string> UndoText(std::string_view bytes) {
  const auto has = [&](char c) { return bytes.find(c) != std::string_view::npos; };
  std::vector<std::string> out;
  if (has('%')) out.push_back(codec::PercentDecode(bytes));
  if (has('+')) out.push_back(codec::FormDecode(bytes));
  if (has('\\')) out.push_back(codec::JsonUnescape(bytes));
  if (has('=')) out.push_back(UndoQuotedPrintable(bytes));
  std::erase_if(out, [&](const std::string& undone) {
    return undone.size() == bytes.size() && undone == bytes;
  });
  return out;
}

std::vector<std::string> UndoDigits(std::string_view bytes) {
  std::vector<std::string> out;
  for (size_t from = 0; from < 4; ++from) out.push_back(Decode(bytes, kBase64, 6, from));
  for (size_t from = 0; from < 2; ++from) out.push_back(Decode(bytes, kHex, 4, from));
  const std::string lines = LinesOfNumbers(bytes);
  if (lines.empty()) return out;
  for (const Dump& dump : {Dump{16, false, false}, Dump{16, false, true}, Dump{16, true, false},
                           Dump{16, true, true}, Dump{8, true, false}, Dump{10, true, false}}) {
    out.push_back(UndoDump(lines, dump));
  }
  return out;
}

bool HidesBytes(std::string_view bytes) {
  constexpr size_t kHiddenMin = 73;
  constexpr size_t kLineMin = 60;  // A run goes on behind the end of a line of this length.
  std::string run;
  size_t line = 0;
  const auto hides = [&] {
    const bool hex = run.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    const int bits = hex ? 4 : 6;
    if (run.size() * static_cast<size_t>(bits) / kByteBits < kHiddenMin) return false;
    if (!LooksRandom(run, hex)) return false;
    for (size_t from = 0; from < (hex ? 2 : 4); ++from) {
      if (IsReadable(Decode(run, hex ? kHex : kBase64, bits, from))) return false;
    }
    return true;
  };
  for (const char c : bytes) {
    if (Base64Value(c) >= 0) {
      run += c;
      ++line;
    } else if (IsBlank(c) && (line >= kLineMin || line == 0)) {
      line = 0;
    } else {
      if (hides()) return true;
      run.clear();
      line = 0;
    }
  }
  return hides();
}

}  // namespace gateway
