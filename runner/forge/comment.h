// SPDX-License-Identifier: Apache-2.0
// The text of our one comment on a pull request.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forge {

// GitHub refuses a longer comment with 422 "body is too long". It counts code points (and stores at
// most four bytes of each), so UTF-8 of this many code points always fits.
inline constexpr size_t kCommentCharactersMax = 65536;

// What is posted: the marker's line, a note when the body had to be cut, then the body made safe:
// "<!--" becomes "&lt;!--", so that no text can carry a marker; CR and control characters go; bytes
// that are not UTF-8 become U+FFFD. The cut is at a line's end. The note stands above the body,
// since the cut may fall inside a code fence or a folded part.
struct CommentText {
  std::string text;
  bool cut = false;
};
CommentText RenderComment(std::string_view marker_key, std::string_view body,
                          std::string_view full_text_at);

// The first line of each of our comments: "<!-- agentic-ci:KEY -->", KEY percent-encoded so that
// it can not end the HTML comment.
std::string RenderMarker(std::string_view marker_key);

// Whether a comment's text starts with exactly this marker's line.
bool CarriesMarker(std::string_view text, std::string_view marker);

}  // namespace forge
