// SPDX-License-Identifier: Apache-2.0
// The forms in which a program may send a text, undone: for a search that is for the text alone.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gateway {

// Returns the letters, in lower case, the digits, and the bytes beyond ASCII of `bytes`: the same
// for a text as it is, in capitals, wrapped at any column, quoted, and in UTF-16.
std::string Skeleton(std::string_view bytes);

// Returns whether `bytes` can be read: UTF-8, or ASCII in UTF-16, without control characters but
// those of text. A piece may begin and end within a character.
bool IsReadable(std::string_view bytes);

// Returns `bytes` with what lies around text undone, each if it is there: percent-encoding, a
// form's, JSON's escapes, quoted-printable.
std::vector<std::string> UndoText(std::string_view bytes);

// Returns the values alone of what looks like names with values ("a=...&b=..."), one behind the
// other.
std::string JoinValues(std::string_view bytes);

// Returns `bytes` without line ends and the places that lines begin with, as those of `od -c` do.
std::string WithoutPlaces(std::string_view bytes);

// Returns the bytes that runs of digits in `bytes` stand for: Base64 of either alphabet and
// hexadecimal, wherever they begin, and the dumps of xxd, od and hexdump in hexadecimal, octal or
// decimal, in bytes or little-endian words. Most of it is noise.
std::vector<std::string> UndoDigits(std::string_view bytes);

// Returns whether `bytes` has a run of Base64 or hexadecimal that stands for over 72 bytes which
// are not text: keys, signatures and what was compressed or encrypted. Shorter ones are digests.
bool HidesBytes(std::string_view bytes);

}  // namespace gateway
