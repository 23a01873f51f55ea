// SPDX-License-Identifier: Apache-2.0
// The text of our one comment on a pull request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

// GitHub refuses a longer comment with 422 "body is too long". It counts code points (and stores at
// most four bytes of each), so UTF-8 of this many code points always fits.
inline constexpr size_t kCommentCharactersMax = 65536;

// The run that a comment is about, in a line of its own under the marker's: so that a report that
// is posted late takes no newer one's place. Only ever read out of our own comments.
struct CommentStamp {
  int64_t started_ms = 0;
  std::string head_sha;  // 40 or 64 hexadecimal digits; empty if not known.
  // What was found, a word of hexadecimal digits for each; nullopt if that is not known. At most
  // kStampFindingsMax.
  std::optional<std::vector<std::string>> findings = std::nullopt;
};
inline constexpr size_t kStampFindingsMax = 300;

// Returns nullopt if the text has none.
std::optional<CommentStamp> ReadStamp(std::string_view text);

// The text that is posted: the marker's line, the stamp's, a note when the body had to be cut, then
// the body made safe: "<!--" becomes "&lt;!--", so that no text can carry a marker; CR and control
// characters go; bytes that are not UTF-8 become U+FFFD. The cut is at a line's end. The note
// stands above the body, since the cut may fall inside a code fence or a folded part.
struct CommentText {
  std::string text;
  bool cut = false;
};
CommentText RenderComment(std::string_view marker_key, std::string_view body,
                          std::string_view full_text_at,
                          const std::optional<CommentStamp>& stamp = std::nullopt);

// Renders the first line of each of our comments: "<!-- agentic-ci:KEY -->", KEY percent-encoded so
// that it can not end the HTML comment.
std::string RenderMarker(std::string_view marker_key);

// Returns whether a comment's text starts with exactly this marker's line.
bool CarriesMarker(std::string_view text, std::string_view marker);

}  // namespace forge
