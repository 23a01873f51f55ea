// SPDX-License-Identifier: Apache-2.0
// The forms in which a program may send a text, undone: for a search that is for the text alone.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gateway {

// Returns the letters, in lower case, the digits, and with `beyond_ascii` the bytes beyond ASCII of
// `bytes`: the same for a text as it is, in capitals, wrapped at any column, quoted, and in UTF-16.
std::string Skeleton(std::string_view bytes, bool beyond_ascii = true);

// Returns the characters of `text` from its end to its beginning.
std::string Backwards(std::string_view text);

// Returns whether `bytes` can be read: UTF-8, or ASCII in UTF-16, without control characters but
// those of text. A piece may begin and end within a character.
bool IsReadable(std::string_view bytes);

// Returns how many bytes or characters of `bytes` do not belong to a text.
size_t CountUnreadable(std::string_view bytes);

// Text that lies in another form around encoded characters.
struct Undone {
  std::string text;
  bool hides = false;  // Much of it is not text, but bytes.
};

// Returns `bytes` with what lies around text undone, each if it is there: percent-encoding, JSON's
// escapes, quoted-printable. What is farther from an encoded character is left out: it is the same
// in `bytes`, so that many layers cost little.
std::vector<Undone> UndoText(std::string_view bytes);

// The values of what looks like names with values ("a=...&b=...", JSON, fields, a form's parts).
struct Values {
  std::string all;      // One behind the other.
  std::string by_name;  // The same, sorted by the names without their digits.
};
Values JoinValues(std::string_view bytes);

// Returns `bytes` without line ends and the places that lines begin with, as those of `od -c` do.
std::string WithoutPlaces(std::string_view bytes);

}  // namespace gateway
