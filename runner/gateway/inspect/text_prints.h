// SPDX-License-Identifier: Apache-2.0
// Finds pieces of known texts in what a model is sent, by fingerprints of their letters. Pure.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gateway {

// Gives the letters of a text, in lower case: the same for a text as it is, wrapped at any column,
// quoted, with line numbers, and with the escapes of JSON, once or more. Letters beyond ASCII are
// UTF-8; what is not, and punctuation, is left out. Bytes may come in pieces.
class LetterReader {
 public:
  // Appends the letters of the next bytes to `letters`.
  void Read(std::string_view bytes, std::string* letters);

 private:
  void Take(char c, std::string* letters);
  void TakeCharacter(char32_t character, std::string* letters);

  bool escape_ = false;    // Behind a backslash.
  int hex_left_ = 0;       // Digits of "\u0041" that are to come.
  char32_t code_ = 0;      // Theirs so far.
  char32_t high_ = 0;      // The first half of a surrogate pair.
  std::string character_;  // Bytes of UTF-8 so far.
};

// Fingerprints of texts. A text is found once kFoundLetters of its letters in a row were sent, or
// all letters of a shorter one. Texts of fewer than kLettersMin letters are ignored.
class TextPrints {
 public:
  static constexpr size_t kFoundLetters = 47;
  static constexpr size_t kLettersMin = 12;

  explicit TextPrints(const std::vector<std::string>& texts);

  // Looks at one message, piece by piece. The prints must outlive it.
  class Look {
   public:
    explicit Look(const TextPrints& prints) : prints_(prints) {}
    // Returns the number of a text that the bytes so far have a piece of.
    std::optional<size_t> Find(std::string_view bytes);

   private:
    std::optional<size_t> FindShort();

    const TextPrints& prints_;
    LetterReader reader_;
    std::string letters_;  // Those that were looked at last, then the new ones.
    size_t seen_ = 0;      // The letters so far that are in `hash_`, up to kWindow.
    uint64_t hash_ = 0;
  };

 private:
  static constexpr size_t kWindow = 32;  // The letters of one print.
  static constexpr size_t kOneOf = 16;   // One print is kept for so many consecutive windows.
  static_assert(kFoundLetters == kWindow + kOneOf - 1);
  static constexpr int kBeginsBits = 18;

  void Add(size_t text, std::string_view letters);

  std::unordered_map<uint64_t, size_t> prints_;
  std::bitset<size_t{1} << kBeginsBits> begins_;        // Of the prints.
  std::vector<std::pair<std::string, size_t>> shorts_;  // Letters of short texts, whole.
};

// Knows the message before: agents send a conversation again with each turn, and most of it has
// been looked at.
class LastMessage {
 public:
  // Returns the part of `message` that differs from the message before, with so many letters around
  // it that a piece of a text on its edge is whole; empty if they are the same. Then `message` is
  // the message before.
  std::string_view NewPart(std::string_view message);

 private:
  std::string last_;
};

}  // namespace gateway
