// SPDX-License-Identifier: Apache-2.0
#include "codec/text/neutral.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/ascii.h"
#include "codec/text/fold.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr std::string_view kEllipsis = "\u2026";
constexpr std::string_view kZeroWidthSpace = "&#8203;";

bool EndsWithIgnoringCase(std::string_view text, std::string_view lower_end) {
  if (text.size() < lower_end.size()) return false;
  text.remove_prefix(text.size() - lower_end.size());
  return std::equal(text.begin(), text.end(), lower_end.begin(),
                    [](char a, char b) { return ascii::ToLower(a) == b; });
}

// Characters that steer how others are shown, or that show nothing: what a reader cannot see must
// not be there (Trojan Source; text hidden in tag characters; identifiers of Hangul fillers).
// U+2800 is a Braille cell without dots. A value that ends in fffe or ffff is not a character, and
// XML has no way to write the first two.
bool IsHidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029 || c == 0x2800 ||
         (c >= 0xfff9 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe || IsDefaultIgnorable(c);
}

bool IsVariationSelector(char32_t c) {
  return (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0x180b && c <= 0x180d) || c == 0x180f;
}

// Scripts and emoji need joiners and variation selectors: such a character stays behind one that it
// can act on, and only one does. `before` is the character before it; 0 if none is shown.
bool ActsOn(char32_t c, char32_t before) {
  const bool shown = before >= 0x80 && !IsHidden(before);
  if (c == 0x200c || c == 0x200d) return shown || IsVariationSelector(before);
  const bool keycap = (before >= '0' && before <= '9') || before == '#' || before == '*';
  return IsVariationSelector(c) && (shown || keycap);
}

// Length of the ANSI sequence (ECMA-48) at the start of `text`, which begins with ESC; 0 if none.
size_t AnsiLength(std::string_view text) {
  if (text.size() < 2) return 0;
  const char kind = text[1];
  size_t at = 2;
  if (kind == '[') {
    while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f) ++at;
    return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7e ? at + 1 : 0;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') {
    for (; at < text.size() && text[at] != '\n'; ++at) {
      if (text[at] == '\a') return at + 1;
      if (text[at] == '\x1b' && at + 1 < text.size() && text[at + 1] == '\\') return at + 2;
    }
    return 0;  // Without an end it would swallow what follows: shown instead.
  }
  at = 1;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x2f) ++at;
  return at < text.size() && text[at] >= 0x30 && text[at] <= 0x7e ? at + 1 : 0;
}

enum class Lines { kOne, kMany, kEscaped };

// Returns how many printable characters of ASCII `text` begins with.
size_t PlainLength(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && text[length] >= ' ' && text[length] <= '~') ++length;
  return length;
}

// Valid UTF-8 of at most `bytes_max` bytes with nothing hidden in it; ANSI sequences are dropped.
std::string Visible(std::string_view text, Lines lines, size_t bytes_max) {
  std::string out;
  size_t at = 0;
  char32_t before = 0;
  while (at < text.size() && out.size() <= bytes_max) {
    // Most of any text is passed on as it is.
    const size_t room = std::min(text.size() - at, bytes_max - out.size()) + 1;
    const size_t plain = PlainLength(text.substr(at, room));
    if (plain > 0) {
      out += text.substr(at, plain);
      at += plain;
      before = static_cast<unsigned char>(text[at - 1]);
      continue;
    }
    const std::string_view rest = text.substr(at);
    const Utf8Character character = NextUtf8(rest);
    if (size_t ansi = rest[0] == '\x1b' ? AnsiLength(rest) : 0; ansi > 0) {
      at += ansi;
      continue;
    }
    at += character.bytes;
    const bool line_end = rest[0] == '\n' || rest[0] == '\r';
    const bool hidden = IsHidden(character.value) && !ActsOn(character.value, before);
    before = hidden || !character.valid ? 0 : character.value;
    if (line_end && lines != Lines::kEscaped) {
      if (rest.substr(0, 2) == "\r\n") ++at;
      out += lines == Lines::kMany ? '\n' : ' ';
    } else if (rest[0] == '\t') {
      out += '\t';
    } else if (!character.valid) {
      out += "\ufffd";
    } else if (hidden) {
      char escape[16];
      std::snprintf(escape, sizeof escape, "\\u{%x}", static_cast<unsigned>(character.value));
      out += escape;
    } else {
      out += rest.substr(0, character.bytes);
    }
  }
  return CutUtf8(out, bytes_max);
}

void TrimEnd(std::string* text) {
  while (!text->empty() && (text->back() == ' ' || text->back() == '\t')) text->pop_back();
}

size_t LongestRun(std::string_view text, char of) {
  size_t longest = 0;
  size_t run = 0;
  for (char c : text) {
    run = c == of ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// Returns whether GitLab, or a program that reads comments, may take the line for a command
// ("/approve"). GitLab's regular expressions do not see every fence that Markdown has, so a fence
// protects no line. A command starts in the first column; "//" and "/*" start comments in code.
bool StartsCommand(std::string_view line) {
  return line.size() > 1 && line[0] == '/' && line[1] != '/' && line[1] != '*' && line[1] != ' ' &&
         line[1] != '\t';
}

// Calls `visit` with each line, without its newline.
template <typename Visit>
void EachLine(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    visit(text.substr(at, end - at));
    at = end + 1;
  }
}

void AppendEntity(char c, std::string* out) {
  out->append("&#").append(std::to_string(static_cast<unsigned char>(c))).append(";");
}

// GitHub and GitLab look for references in the rendered text, so that escaping does not stop them:
// only something between the sign and the name does.
bool StartsReference(char sign, char next) {
  return std::string_view("@#!$%~&^").find(sign) != std::string_view::npos &&
         (ascii::IsAlphanumeric(next) || next == '_' || next == '"' || next == '[' || next == '-');
}

// Returns whether .NET trims it at the start of a line (Char.IsWhiteSpace), as GitHub's runner
// does.
bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// Returns how many bytes of white space `line` begins with.
size_t SizeOfWhiteSpace(std::string_view line) {
  size_t at = 0;
  while (at < line.size()) {
    const Utf8Character character = NextUtf8(line.substr(at));
    if (!character.valid || !IsWhiteSpace(character.value)) break;
    at += character.bytes;
  }
  return at;
}

}  // namespace

std::string ValidUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Character character = NextUtf8(bytes.substr(at));
    out += character.valid ? bytes.substr(at, character.bytes) : std::string_view("\ufffd");
    at += character.bytes;
  }
  return out;
}

std::string CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  const bool room = bytes_max >= kEllipsis.size();
  size_t end = room ? bytes_max - kEllipsis.size() : bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  std::string out(text.substr(0, end));
  if (room) out += kEllipsis;
  return out;
}

std::string VisibleLine(std::string_view text, size_t bytes_max) {
  std::string out = Visible(text, Lines::kOne, bytes_max);
  TrimEnd(&out);
  return out;
}

std::string EscapedLine(std::string_view text) {
  return Visible(text, Lines::kEscaped, std::string_view::npos);
}

// "::command::" counts at the start of a line, white space aside; "##[command]" and
// "##vso[command]" anywhere in it (actions/runner, ActionCommand.cs).
std::string WithoutCommands(std::string line, LogCommands commands) {
  if (commands == LogCommands::kNone) return line;
  const size_t start = SizeOfWhiteSpace(line);
  // No command begins with a digit, as the address "::1" does.
  bool address = start + 2 < line.size() && ascii::IsDigit(line[start + 2]);
  if (line.compare(start, 2, "::") == 0 && !address) line.insert(start + 1, " ");
  for (size_t at = line.find("##"); at != std::string::npos; at = line.find("##", at + 1)) {
    size_t end = at + 2;
    while (commands == LogCommands::kAll && end < line.size() && ascii::IsAlpha(line[end])) ++end;
    if (end < line.size() && line[end] == '[') line.insert(at + 1, " ");
  }
  return line;
}

std::string NeutralLine(std::string_view text, size_t bytes_max) {
  return CutUtf8(WithoutCommands(VisibleLine(text, bytes_max), LogCommands::kAll), bytes_max);
}

std::string MarkdownText(std::string_view text, size_t bytes_max) {
  std::string plain = Visible(text, Lines::kOne, bytes_max);
  TrimEnd(&plain);
  std::string out;
  for (size_t at = 0; at < plain.size(); ++at) {
    const char c = plain[at];
    const char next = at + 1 < plain.size() ? plain[at + 1] : '\0';
    const std::string_view before = std::string_view(plain).substr(0, at);
    // "www." and "gh-12" become links without any sign in front.
    if (c == '.' && EndsWithIgnoringCase(before, "www")) out += kZeroWidthSpace;
    if (ascii::IsDigit(c) && EndsWithIgnoringCase(before, "gh-")) out += kZeroWidthSpace;
    // The first character could start a list, a heading or a quick action.
    const bool leads =
        out.empty() && static_cast<unsigned char>(c) < 0x80 && !ascii::IsAlphanumeric(c);
    const bool lists = out.empty() && ascii::IsDigit(c);
    if (leads || lists ||
        std::string_view("&<>\"'\\`*_[]{}()~|!^#@$%").find(c) != std::string::npos) {
      AppendEntity(c, &out);
    } else {
      out += c;
    }
    if (StartsReference(c, next) || (c == ':' && next == '/')) out += kZeroWidthSpace;
  }
  return out;
}

std::string MarkdownCode(std::string_view text, size_t bytes_max) {
  std::string plain = Visible(text, Lines::kOne, bytes_max);
  TrimEnd(&plain);
  if (plain.empty()) return "` `";
  std::string shown;
  for (char c : plain) {
    if (c == '|') {
      shown += "\u2502";  // Backslashes do not protect '|' in every place where a table is cut up.
    } else {
      shown += c;
    }
  }
  const std::string fence(LongestRun(shown, '`') + 1, '`');
  const bool padded = shown.front() == '`' || shown.back() == '`' || shown.front() == ' ';
  return fence + (padded ? " " : "") + shown + (padded ? " " : "") + fence;
}

std::string MarkdownFence(std::string_view text, std::string_view language, size_t bytes_max) {
  std::string plain = Visible(text, Lines::kMany, bytes_max);
  while (!plain.empty() && plain.back() == '\n') plain.pop_back();
  std::string shown;
  EachLine(plain, [&](std::string_view line) {
    if (StartsCommand(line)) shown += ' ';
    shown.append(line).append("\n");
  });
  const std::string fence(std::max<size_t>(3, LongestRun(shown, '`') + 1), '`');
  return fence + std::string(language) + "\n" + shown + fence + "\n";
}

std::optional<std::string> MarkdownVerbatim(std::string_view lines, std::string_view language,
                                            size_t bytes_max) {
  if (lines.size() > bytes_max || Visible(lines, Lines::kMany, bytes_max) != lines) {
    return std::nullopt;
  }
  bool commands = false;
  EachLine(lines, [&](std::string_view line) { commands = commands || StartsCommand(line); });
  if (commands) return std::nullopt;
  const std::string fence(std::max<size_t>(3, LongestRun(lines, '`') + 1), '`');
  return fence + std::string(language) + "\n" + std::string(lines) + fence + "\n";
}

std::string HtmlText(std::string_view text, size_t bytes_max) {
  std::string out;
  for (char c : Visible(text, Lines::kMany, bytes_max)) {
    if (std::string_view("&<>\"'`").find(c) != std::string_view::npos) {
      AppendEntity(c, &out);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace codec
