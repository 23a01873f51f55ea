// SPDX-License-Identifier: Apache-2.0
// Prose in Markdown that an agent wrote, as a comment may show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace codec {

// Renders `text` (Markdown from outside, any bytes) as Markdown of a safe subset: paragraphs, lists
// up to three levels deep, quotations, bold, code spans and fenced code; a heading becomes a bold
// line. All else is shown as the text that it is: links, images, HTML, mentions, references,
// tables. Takes at most `bytes_max` of the text and says when it is cut. Ends with a newline, and
// is empty for blank text.
std::string MarkdownProse(std::string_view text, size_t bytes_max);

// Renders `text` (one line from outside, any bytes) as a line of the same subset: its bold words
// and code spans stay what they are. Takes at most `bytes_max` bytes of it; a mark of which the
// other one is cut off is text.
std::string MarkdownSentence(std::string_view text, size_t bytes_max);

}  // namespace codec
