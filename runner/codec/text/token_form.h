// SPDX-License-Identifier: Apache-2.0
// Recognises credentials in text by the documented forms of their issuers. For masks, gates and
// findings.
#pragma once

#include <cstddef>
#include <string_view>

namespace codec {

// The form of the tokens of one issuer, as it documents them.
struct TokenForm {
  enum class Alphabet { kAlphanumeric, kWord, kDashed, kUpper };

  std::string_view prefix;
  Alphabet alphabet;
  size_t rest_min;  // Characters behind the prefix.
  size_t rest_max;
  std::string_view issuer;  // "a GitHub token"
  std::string_view tag;     // "github-token"
  bool needs_border;        // The prefix is short or common: no letter or digit stands before it.
};

// A token in a text; `form` is null when there is none.
struct FoundToken {
  const TokenForm* form = nullptr;
  size_t length = 0;  // Prefix included.
};

// Returns the token that starts at `at`, in time bounded by the longest form.
FoundToken FindTokenAt(std::string_view text, size_t at);

// A JSON web token (RFC 7519, compact form): three base64url parts, the first two JSON objects.
struct WebToken {
  size_t length = 0;      // 0 if none starts here.
  size_t first_part = 0;  // Characters in which none can start any more.
};
WebToken FindWebTokenAt(std::string_view text, size_t at);

// Returns whether a word starts at `at`: nothing, or no letter or digit, stands before it. The end
// of an escape (`\n`), of a percent code (`%3D`) or of an ANSI colour (ESC [31m) is a border too.
bool AtWordBorder(std::string_view text, size_t at);

}  // namespace codec
