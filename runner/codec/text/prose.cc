// SPDX-License-Identifier: Apache-2.0
#include "codec/text/prose.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "codec/text/neutral.h"

namespace codec {
namespace {

constexpr size_t kNoBound = std::string_view::npos / 4;
constexpr size_t kLevelsMax = 3;

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// Returns the width of the blanks that a line begins with; a tab counts as four.
size_t Indentation(std::string_view line) {
  size_t width = 0;
  for (char c : line) {
    if (c != ' ' && c != '\t') break;
    width += c == '\t' ? 4 : 1;
  }
  return width;
}

// Returns the fence that opens or closes a block: at least three of one sign; empty for another
// line.
std::string_view FenceOf(std::string_view line) {
  const size_t signs = std::min(line.find_first_not_of(line.substr(0, 1)), line.size());
  const bool fence = signs >= 3 && (line[0] == '`' || line[0] == '~');
  const bool span = fence && line.find('`', signs) != std::string_view::npos;
  return fence && !span ? line.substr(0, signs) : std::string_view();
}

// The text between two marks of a kind, at the start of `text`; nullopt where no second one follows
// or nothing stands between them.
std::optional<std::string_view> Between(std::string_view text, std::string_view mark) {
  if (!text.starts_with(mark)) return std::nullopt;
  const size_t end = text.find(mark, mark.size());
  if (end == std::string_view::npos || end == mark.size()) return std::nullopt;
  const std::string_view inner = text.substr(mark.size(), end - mark.size());
  if (inner.front() == ' ' || inner.back() == ' ') return std::nullopt;
  return inner;
}

// One line's text: code spans and bold stay what they are.
std::string Inline(std::string_view text) {
  std::string out;
  std::string plain;
  const auto flush = [&] {
    const size_t words = std::min(plain.find_first_not_of(' '), plain.size());
    const size_t end = plain.find_last_not_of(' ') + 1;
    out.append(words, ' ');
    if (words < end) {
      out += MarkdownText(std::string_view(plain).substr(words, end - words), kNoBound);
      out.append(plain.size() - end, ' ');
    }
    plain.clear();
  };
  while (!text.empty()) {
    const size_t ticks = std::min(text.find_first_not_of('`'), text.size());
    if (ticks > 0) {
      if (const auto code = Between(text, text.substr(0, ticks)); code && ticks < 3) {
        flush();
        if (out.ends_with('`')) out += "&#8203;";  // Two spans would be one, of other text.
        out += MarkdownCode(*code, kNoBound);
        text.remove_prefix(code->size() + 2 * ticks);
      } else {
        plain += text.substr(0, ticks);
        text.remove_prefix(ticks);
      }
      continue;
    }
    if (const auto bold = Between(text, "**"); bold && bold->find('`') == std::string_view::npos) {
      flush();
      out += "**" + MarkdownText(*bold, kNoBound) + "**";
      text.remove_prefix(bold->size() + 4);
      continue;
    }
    plain += text.front();
    text.remove_prefix(1);
  }
  flush();
  return out;
}

// A line's marker of a list, "-" or "3.", and what stands behind it.
struct Item {
  std::string marker;
  std::string_view text;
};
std::optional<Item> ItemOf(std::string_view line) {
  if (line.size() > 2 && std::string_view("-*+").find(line[0]) != std::string_view::npos &&
      line[1] == ' ') {
    return Item{"-", WithoutBlanks(line.substr(2))};
  }
  size_t digits = 0;
  while (digits < line.size() && ascii::IsDigit(line[digits])) ++digits;
  const bool number = digits > 0 && digits <= 3 && digits + 2 < line.size() &&
                      (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ';
  if (!number) return std::nullopt;
  return Item{std::string(line.substr(0, digits)) + ".", WithoutBlanks(line.substr(digits + 2))};
}

class Prose {
 public:
  void Take(std::string_view raw) {
    const std::string_view line = WithoutBlanks(raw);
    const std::string_view fence = FenceOf(line);
    if (!fence_.empty()) {
      const bool closes = fence.size() >= fence_.size() && fence[0] == fence_[0] && fence == line;
      if (closes) return EndCode();
      (code_ += raw) += '\n';
      return;
    }
    if (!fence.empty()) {
      fence_ = fence;
    } else if (line.empty()) {
      Blank();
    } else {
      TakeText(Indentation(raw), line);
    }
  }

  std::string Finish() {
    if (!fence_.empty()) EndCode();
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  void TakeText(size_t indentation, std::string_view line) {
    const size_t heading = std::min(line.find_first_not_of('#'), line.size());
    if (heading > 0 && heading <= 6 && heading < line.size() && line[heading] == ' ') {
      std::string_view title = WithoutBlanks(line.substr(heading));
      while (title.ends_with("#")) title.remove_suffix(1);
      Blank();
      std::string words(WithoutBlanks(title));
      std::erase(words, '*');
      out_ += "**" + MarkdownText(words, kNoBound) + "**\n\n";
      levels_.clear();
      return;
    }
    if (const std::optional<Item> item = ItemOf(line)) return TakeItem(indentation, *item);
    std::string quote;
    if (line.starts_with(">")) {
      quote = "> ";
      while (line.starts_with(">")) line = WithoutBlanks(line.substr(1));
      if (line.empty()) return;
    } else if (levels_.empty() && !out_.empty() && was_quote_) {
      Blank();  // A line of text behind a quotation would go on with it.
    }
    if (indentation == 0 && after_blank_) levels_.clear();
    const std::string text = Inline(line);
    if (!text.empty()) out_ += std::string(2 * levels_.size(), ' ') + quote + text + "\n";
    was_quote_ = !quote.empty();
    after_blank_ = false;
  }

  void TakeItem(size_t indentation, const Item& item) {
    while (!levels_.empty() && levels_.back() > indentation) levels_.pop_back();
    if (levels_.empty() || levels_.back() < indentation) {
      if (levels_.empty() && !out_.empty()) Blank();
      if (levels_.size() < kLevelsMax) levels_.push_back(indentation);
    }
    const std::string text = Inline(item.text);
    // Three blanks for each level put an item below a number as well as below a sign.
    out_ += std::string(3 * (levels_.size() - 1), ' ') + item.marker + " " + text + "\n";
    was_quote_ = after_blank_ = false;
  }

  void EndCode() {
    Blank();
    out_ += MarkdownFence(code_, "", kNoBound) + "\n";
    fence_.clear();
    code_.clear();
    levels_.clear();
  }

  void Blank() {
    after_blank_ = true;
    was_quote_ = false;
    if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
  }

  std::string out_;
  std::string fence_;  // The fence that began the block of code; empty outside of one.
  std::string code_;
  std::vector<size_t> levels_;  // The indentation of each list that the line is in.
  bool was_quote_ = false;
  bool after_blank_ = false;
};

}  // namespace

std::string MarkdownProse(std::string_view text, size_t bytes_max) {
  const bool cut = text.size() > bytes_max;
  if (cut) text = text.substr(0, text.rfind('\n', bytes_max) + 1);
  Prose prose;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    prose.Take(text.substr(at, end - at));
    at = end + 1;
  }
  std::string out = prose.Finish();
  if (cut) out += "\n(The text is cut here.)\n";
  return out;
}

std::string MarkdownSentence(std::string_view text, size_t bytes_max) {
  return Inline(WithoutBlanks(VisibleLine(text, bytes_max)));
}

}  // namespace codec
