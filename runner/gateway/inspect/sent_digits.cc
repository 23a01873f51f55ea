// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_digits.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "codec/text/utf8.h"
#include "gateway/inspect/sent_forms.h"

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
constexpr size_t kHiddenMin = 73;  // Bytes that are not text; fewer are a digest.

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

// Keeps of a stream of bytes what is text: stretches of at least so many characters that can be
// read, each on a line. Zeros are dropped, as in UTF-16.
class TextSieve {
 public:
  void Put(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return;
    if (byte >= 0x80 ? Continues(byte) : pending_ == 0 && (byte >= ' ' ? c != 0x7f : IsBlank(c))) {
      text_ += c;
      if (pending_ == 0) ++characters_;
      return;
    }
    const bool within = pending_ > 0;
    End();
    if (within) Put(c);  // Not the end of that character, but the beginning of another one.
  }
  std::string Take() {
    End();
    return std::move(text_);
  }

 private:
  static constexpr size_t kCharactersMin = 8;

  // Returns whether the byte is the next of a character beyond ASCII.
  bool Continues(unsigned char byte) {
    if (pending_ > 0) return (byte & 0xc0) == 0x80 && (--pending_, true);
    if (byte < 0xc2 || byte > 0xf4) return false;
    pending_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    return true;
  }
  void End() {
    if (characters_ < kCharactersMin) {
      text_.resize(begin_);
    } else if (text_.size() > begin_) {
      text_ += '\n';
    }
    begin_ = text_.size();
    characters_ = 0;
    pending_ = 0;
  }

  std::string text_;
  size_t begin_ = 0;  // Of the last stretch.
  size_t characters_ = 0;
  int pending_ = 0;  // Bytes that its last character still needs.
};

// Passes on the bytes of all runs, without the first `from` digits of each. Blanks do not end a
// run. Numbers are not Base64: that of a text has a letter among any eight digits.
template <typename Put>
void Decode(std::string_view in, const Digits& digits, int bits, size_t from, Put put) {
  uint32_t held = 0;
  int held_bits = 0;
  size_t seen = 0;
  constexpr size_t kNumberMin = 8;
  size_t numbers = 0;  // The decimal digits in a row.
  for (const char c : in) {
    const int digit = digits[static_cast<unsigned char>(c)];
    if (digit < 0) {
      if (!IsBlank(c)) held_bits = 0, seen = 0;
      continue;
    }
    numbers = ascii::IsDigit(c) ? numbers + 1 : 0;
    if (seen++ < from) continue;
    held = (held << bits) | static_cast<uint32_t>(digit);
    held_bits += bits;
    if (held_bits < kByteBits) continue;
    held_bits -= kByteBits;
    if (bits == 6 && numbers >= kNumberMin) continue;
    put(static_cast<char>((held >> held_bits) & 0xff));
  }
}

// Returns whether a row of decimal digits is hexadecimal for text, such as hexadecimal digits or
// percent-encoding.
bool IsHexOfText(std::string_view row) {
  for (const size_t from : {size_t{0}, size_t{1}}) {
    size_t at = from;
    while (at + 1 < row.size() && row[at] >= '2' && row[at] <= '7') at += 2;
    if (at + 1 >= row.size()) return true;
  }
  return false;
}

// Returns `in` with other characters for its long rows of decimal digits: as hexadecimal, numbers
// stand for letters as mixed as those of arbitrary bytes. Blanks do not end a row.
std::string WithoutCounting(std::string_view in) {
  constexpr size_t kRowMin = 32;
  std::string out(in);
  size_t begin = 0;
  std::string row;
  for (size_t i = 0; i <= in.size(); ++i) {
    if (i < in.size() && ascii::IsDigit(in[i])) {
      row += in[i];
    } else if (i == in.size() || !IsBlank(in[i])) {
      if (row.size() >= kRowMin && !IsHexOfText(row)) std::fill(&out[begin], &out[i], '.');
      begin = i + 1;
      row.clear();
    }
  }
  return out;
}

// Returns the runs of three numbers and more, each as a line: few texts have any. The text behind
// the numbers of a dump's line is appended to `behind`: it does not belong among them.
std::string LinesOfNumbers(std::string_view in, std::string* behind) {
  constexpr size_t kNumbersMin = 3;
  constexpr size_t kPlaceDigitsMin = 6;
  std::string out;
  size_t begin = 0;  // Of the run, and of the word that the last character is in.
  size_t word = 0;
  size_t numbers = 0;
  bool in_word = false;
  bool number = false;
  bool place = false;  // The line begins as a dump's does: behind its numbers is text.
  size_t text = 0;     // Where that begins.
  const auto end_run = [&](size_t end) {
    if (numbers >= kNumbersMin) out.append(in.substr(begin, end - begin)).append("\n");
    if (numbers >= kNumbersMin && place) {
      begin = std::string_view::npos;
      text = end;
    }
    numbers = 0;
  };
  for (size_t i = 0; i <= in.size(); ++i) {
    const char c = i < in.size() ? in[i] : '\n';
    const bool digit = kHex[static_cast<unsigned char>(c)] >= 0 || c == 'x';
    if (ascii::IsAlphanumeric(c) || static_cast<unsigned char>(c) >= 0x80) {
      number = digit && (number || !in_word);
      if (!in_word) word = i;
      in_word = true;
      continue;
    }
    if (in_word && begin != std::string_view::npos) {
      if (!number) end_run(word);
      if (number && numbers++ == 0) begin = word;
      if (number && numbers == 1 && (word == 0 || in[word - 1] == '\n')) {
        place = i - word >= kPlaceDigitsMin;
      }
    }
    in_word = number = false;
    if (c != '\n') continue;
    if (begin != std::string_view::npos) {
      end_run(i);
    } else {
      behind->append(in.substr(text, i - text)).append("\n");
    }
    begin = 0;
    place = false;
  }
  return out;
}

// The way a program prints bytes as numbers.
struct Dump {
  int base;
  bool words;     // Numbers of more than a byte are little-endian.
  bool gap_ends;  // Two blanks end a line's numbers, as in xxd; else they are only a gap.
};

constexpr std::array<Dump, 6> kDumps = {{{16, false, false},
                                         {16, false, true},
                                         {16, true, false},
                                         {16, true, true},
                                         {8, true, false},
                                         {10, true, false}}};

// Appends the bytes of one number; returns false if it is not one.
bool TakeNumber(std::string_view digits, const Dump& dump, std::string& out) {
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  if (digits.starts_with("x")) digits.remove_prefix(1);
  if (digits.ends_with(".0")) digits.remove_suffix(2);
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
// Returns false if a number among the others is too large for a byte, as where one counts. Other
// words are left out: they hide nothing that follows.
bool TakeLine(std::string_view line, const Dump& dump, std::string& out) {
  constexpr size_t kPlaceDigitsMin = 6;
  const std::string_view separators = " \t\r,;:[](){}\"'\\&#+";
  size_t place_size = 0;
  std::string place;  // The bytes of the first word, until the second one says what it is.
  size_t words = 0;
  bool of_bytes = true;
  while (!line.empty()) {
    const size_t begin = std::min(line.find_first_not_of(separators), line.size());
    if (dump.gap_ends && words > 1 && begin > 1) return of_bytes;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(separators));
    if (word.empty()) return of_bytes;
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
    if (!number && words > 2 && ascii::IsNumber(word)) of_bytes = false;
    out += bytes;
  }
  if (words == 1) out += place;
  return of_bytes;
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

// Returns whether a stretch of what numbers stand for is not text.
bool HasUnreadableStretch(std::string_view bytes) {
  constexpr size_t kStretch = 256;
  for (size_t at = 0; at < bytes.size(); at += kStretch) {
    const std::string_view stretch = bytes.substr(at, kStretch);
    if (CountUnreadable(stretch) * 8 >= stretch.size()) return true;
  }
  return false;
}

// Returns whether `in` has so many characters of one block of Unicode as no language does: bytes
// are mapped to them. Syllabaries and what lies beyond them do have as many.
bool LettersHideBytes(std::string_view in) {
  constexpr size_t kLettersMax = 112;
  constexpr size_t kBlock = 256;
  constexpr std::array<size_t, 7> kSyllabaries = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x30};
  std::array<std::bitset<kBlock>, 0x34> letters;
  for (size_t i = 0; i < in.size();) {
    if (static_cast<unsigned char>(in[i]) < 0x80) {
      ++i;
      continue;
    }
    const codec::Utf8Character character = codec::NextUtf8(in.substr(i));
    const size_t block = character.value / kBlock;
    if (character.valid && block < letters.size()) letters[block].set(character.value % kBlock);
    i += character.bytes;
  }
  for (const size_t block : kSyllabaries) letters[block].reset();
  return std::any_of(letters.begin(), letters.end(),
                     [](const auto& block) { return block.count() > size_t{kLettersMax}; });
}

// Returns whether the digits stand for over 72 bytes which are not text.
bool DigitsHideBytes(std::string_view run) {
  const bool hex = run.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  const int bits = hex ? 4 : 6;
  if (run.size() * static_cast<size_t>(bits) / kByteBits < kHiddenMin) return false;
  if (!LooksRandom(run, hex)) return false;
  for (size_t from = 0; from < (hex ? 2 : 4); ++from) {
    std::string decoded;
    Decode(run, hex ? kHex : kBase64, bits, from, [&](char c) { decoded += c; });
    if (IsReadable(decoded)) return false;
  }
  return true;
}

// Returns whether a long run of Base64 or hexadecimal stands for what is not text.
bool RunsHideBytes(std::string_view bytes) {
  constexpr size_t kLineMin = 60;  // A run goes on behind the end of a line of this length.
  constexpr size_t kPart = 160;    // What is before or behind does not make it look like text.
  std::string run;
  size_t line = 0;
  const auto ends_part = [&] {
    const bool hides = DigitsHideBytes(run);
    run.erase(0, run.size() - std::min(run.size(), kPart / 2));
    return hides;
  };
  for (const char c : bytes) {
    if (kBase64[static_cast<unsigned char>(c)] >= 0) {
      run += c;
      ++line;
      if (run.size() == kPart && ends_part()) return true;
    } else if (IsBlank(c) && (line >= kLineMin || line == 0)) {
      line = 0;
    } else {
      if (ends_part()) return true;
      run.clear();
      line = 0;
    }
  }
  return ends_part();
}

// Adds what rows of digits stand for of which each three are a byte, in decimal or octal. A row
// that is as long and stands for anything else has three that are too large. It may be wrapped;
// numbers of three digits and less are not rows.
void UndoTriples(std::string_view in, Numbers* numbers) {
  constexpr size_t kTriple = 3;
  constexpr size_t kTriplesMin = 8;
  std::string row;
  const auto undo = [&](size_t from, int base) {
    std::string run;
    const auto end_run = [&] {
      if (run.size() >= kTriplesMin) {
        TextSieve text;
        for (const char c : run) text.Put(c);
        numbers->texts.push_back(text.Take());
      }
      numbers->hide = numbers->hide || (run.size() >= kHiddenMin && HasUnreadableStretch(run));
      run.clear();
    };
    for (size_t at = from; at + kTriple <= row.size(); at += kTriple) {
      unsigned value = 0;
      const char* end = &row[at] + kTriple;
      const auto parsed = std::from_chars(&row[at], end, value, base);
      if (parsed.ptr != end || value > UINT8_MAX) {
        end_run();
      } else {
        run += static_cast<char>(value);
      }
    }
    end_run();
  };
  size_t digits = 0;  // Since the last blank.
  for (size_t i = 0; i <= in.size(); ++i) {
    if (i < in.size() && ascii::IsDigit(in[i])) {
      row += in[i];
      ++digits;
    } else if (i < in.size() && IsBlank(in[i]) && (digits > kTriple || digits == 0)) {
      digits = 0;
    } else {
      for (const int base : {10, 8}) {
        for (size_t from = 0; row.size() >= kTriple * kTriplesMin && from < kTriple; ++from) {
          undo(from, base);
        }
      }
      row.clear();
      digits = 0;
    }
  }
}

}  // namespace

std::vector<DecodedText> UndoDigits(std::string_view bytes) {
  std::vector<DecodedText> out;
  const auto add = [&](std::string_view in, const Digits& digits, int bits, bool counts) {
    for (size_t from = 0; from < (bits == 4 ? 2 : 4); ++from) {
      TextSieve text;
      Decode(in, digits, bits, from, [&](char c) { text.Put(c); });
      out.push_back({text.Take(), counts});
    }
  };
  add(bytes, kBase64, 6, false);
  const std::string uncounted = WithoutCounting(bytes);
  add(bytes, kHex, 4, uncounted != bytes);
  if (uncounted != bytes) add(uncounted, kHex, 4, false);
  return out;
}

Numbers UndoNumbers(std::string_view bytes) {
  Numbers numbers;
  std::string behind;
  const std::string lines = LinesOfNumbers(bytes, &behind);
  UndoTriples(bytes, &numbers);
  if (lines.empty()) return numbers;
  const bool triples_hide = std::exchange(numbers.hide, false);
  bool readable = false;
  for (const Dump& dump : kDumps) {
    constexpr size_t kRowMin = 8;  // Dates and times are fewer numbers.
    std::string rows;
    TextSieve text;
    for (std::string_view rest = lines; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(line.size() + 1);
      std::string row;
      const bool of_bytes = TakeLine(line, dump, row);
      for (const char c : row) text.Put(c);
      if (row.size() >= kRowMin && of_bytes) rows += row;
    }
    if (rows.size() >= kHiddenMin) {
      const bool hides = HasUnreadableStretch(rows);
      numbers.hide = numbers.hide || hides;
      readable = readable || !hides;
    }
    numbers.texts.push_back(text.Take());
  }
  numbers.hide = triples_hide || (numbers.hide && !readable);
  if (behind.empty()) return numbers;
  Numbers more = UndoNumbers(behind);  // No line of that begins with a number.
  numbers.hide = numbers.hide || more.hide;
  std::move(more.texts.begin(), more.texts.end(), std::back_inserter(numbers.texts));
  return numbers;
}

bool HidesBytes(std::string_view bytes) { return RunsHideBytes(bytes) || LettersHideBytes(bytes); }

}  // namespace gateway
