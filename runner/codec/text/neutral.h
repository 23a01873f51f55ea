// SPDX-License-Identifier: Apache-2.0
// Untrusted text (from an agent, a pull request, a server), made harmless for the place where it
// will be shown. One function per medium; all of them replace invalid UTF-8, make control,
// bidirectional and invisible characters visible as \u{202e}, and cut at UTF-8 borders.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Returns valid UTF-8: invalid sequences become U+FFFD, one for each maximal part (Unicode 15,
// 3.9).
std::string ValidUtf8(std::string_view bytes);

// Returns at most `bytes_max` bytes of `text` (valid UTF-8), never half a character; a cut text
// ends with "…", within the bound if that is at least 3.
std::string CutUtf8(std::string_view text, size_t bytes_max);

// Renders one line for a terminal. ANSI sequences are dropped, line ends become spaces.
std::string VisibleLine(std::string_view text, size_t bytes_max);

// Renders a value within a line of a text: line ends are shown as \u{a}, and nothing is cut.
std::string EscapedLine(std::string_view text);

// The commands that the reader of a log carries out when it finds them in a job's output.
enum class LogCommands {
  kNone,
  kWorkflow,  // GitHub's, Gitea's and Forgejo's: "::add-mask::", "##[error]".
  kAll,       // Those, and Azure's "##vso[" and TeamCity's "##teamcity[".
};

// Returns `line` (visible) with these commands made ineffective; the rest of it stays as it is.
std::string WithoutCommands(std::string line, LogCommands commands);

// Renders VisibleLine() without commands, for a terminal or any CI log.
std::string NeutralLine(std::string_view text, size_t bytes_max = 2000);

// Renders, for Markdown prose and table cells, one line in which nothing is markup, a mention, a
// reference, a link, an image, HTML or a quick action. It must not stand first on a line of its
// own.
std::string MarkdownText(std::string_view text, size_t bytes_max = 1000);

// Renders Markdown's code span on one line, also inside a table ('|' is shown as U+2502).
std::string MarkdownCode(std::string_view text, size_t bytes_max = 300);

// Renders Markdown's fenced block, with a longer fence than anything inside and the newline behind
// it. A line that begins like a quick action ("/approve") gets a space before it, since GitLab
// finds some in fences, too. `language` is this program's, not from outside.
std::string MarkdownFence(std::string_view text, std::string_view language, size_t bytes_max);

// Renders the same byte for byte, for text that a click applies. Returns nullopt if a reader would
// not see all of it as it is (control, bidirectional or invisible characters, invalid UTF-8, more
// than `bytes_max`), or if a line begins like a quick action.
std::optional<std::string> MarkdownVerbatim(std::string_view lines, std::string_view language,
                                            size_t bytes_max);

// Renders text or an attribute's value for HTML. Line ends and tabs stay.
std::string HtmlText(std::string_view text, size_t bytes_max = 1 << 20);

// The beginning of the mark that RedactTokens leaves.
inline constexpr std::string_view kRedactedMark = "[redacted:";

// Replaces what has the form of a well-known credential (codec/text/token_form.h) by
// "[redacted:KIND]". A safety net for texts that leave the machine, not a boundary.
std::string RedactTokens(std::string_view text);

}  // namespace codec
