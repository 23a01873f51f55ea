// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "codec/text/neutral.h"
#include "report/html.h"
#include "report/wording.h"

namespace report {
namespace {

constexpr size_t kLinesMax = 6000;
constexpr size_t kLineBytesMax = 1000;
constexpr size_t kOpenLinesMax = 300;  // A longer file starts folded.

std::string Escape(std::string_view text) {
  return codec::HtmlText(codec::RedactTokens(text), kLineBytesMax);
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

struct Part {  // What belongs to one file, "diff --git" first.
  std::vector<std::string_view> lines;
};

std::vector<Part> SplitParts(std::string_view patch) {
  std::vector<Part> parts;
  for (std::string_view line : SplitLines(patch)) {
    // Inside a hunk every line begins with ' ', '+', '-' or '\', inside a binary part none has
    // spaces.
    if (line.substr(0, 11) == "diff --git " || parts.empty()) parts.emplace_back();
    parts.back().lines.push_back(line);
  }
  return parts;
}

// "@@ -12,3 +14,4 @@": where the hunk begins on both sides.
struct HunkStart {
  int64_t old_line = 0;
  int64_t new_line = 0;
};
HunkStart ParseHunk(std::string_view line) {
  HunkStart start;
  const auto number_after = [line](char sign) {
    int64_t number = 0;
    if (const size_t at = line.find(sign); at != std::string_view::npos) {
      std::from_chars(line.data() + at + 1, line.data() + line.size(), number);
    }
    return std::clamp<int64_t>(number, 0, int64_t{1} << 40);
  };
  start.old_line = number_after('-');
  start.new_line = number_after('+');
  return start;
}

void AppendLine(const char* kind, int64_t number, std::string_view line, std::string* out) {
  *out += "<span class=\"" + std::string(kind) + "\" data-n=\"" +
          (number > 0 ? std::to_string(number) : "") + "\">" + Escape(line) + "\n</span>";
}

// Headers that only repeat what the title says.
bool SaysNothing(std::string_view line, bool titled) {
  constexpr std::array<std::string_view, 4> kAlways = {"diff --git ", "index ", "--- ", "+++ "};
  constexpr std::array<std::string_view, 5> kTitled = {
      "new file mode ", "deleted file mode ", "similarity index ", "rename from ", "rename to "};
  const auto begins = [line](std::string_view with) { return line.substr(0, with.size()) == with; };
  return std::any_of(kAlways.begin(), kAlways.end(), begins) ||
         (titled && std::any_of(kTitled.begin(), kTitled.end(), begins));
}

// The lines of one part; `titled` when a title above them names the file and what became of it.
std::string RenderLines(const Part& part, size_t lines_max, bool titled) {
  std::string out;
  HunkStart at;
  bool in_hunk = false;
  size_t shown = 0;
  for (std::string_view line : part.lines) {
    if (line.substr(0, 2) == "@@") {
      in_hunk = true;
      at = ParseHunk(line);
    }
    if (!in_hunk && SaysNothing(line, titled)) continue;
    if (shown++ >= lines_max) {
      AppendLine("h", 0, "… more in changes.patch", &out);
      break;
    }
    const char kind = line.empty() ? ' ' : line[0];
    if (!in_hunk || kind == '@' || kind == '\\') {
      AppendLine("h", 0, line, &out);
    } else if (kind == '+') {
      AppendLine("a", at.new_line++, line, &out);
    } else if (kind == '-') {
      AppendLine("d", at.old_line++, line, &out);
    } else {
      AppendLine("c", at.new_line++, line, &out);
      ++at.old_line;
    }
  }
  if (out.empty()) AppendLine("h", 0, "the content is the same", &out);
  return out;
}

std::string Title(const Part& part, const ChangedFile* file) {
  if (file == nullptr) {
    const std::string_view header = part.lines.front();
    return "<code>" + Escape(header.substr(std::min<size_t>(11, header.size()))) + "</code>";
  }
  std::string out = "<code>" + Escape(file->path) + "</code>";
  if (!file->old_path.empty()) out = "<code>" + Escape(file->old_path) + "</code> → " + out;
  out += " <span class=\"tag " + Render(file->state) + "\">" + Render(file->state) + "</span>";
  if (file->new_mode == "100755" && file->old_mode != "100755") {
    out += " <span class=\"tag warn\">executable</span>";
  }
  if (file->new_mode == "120000") out += " <span class=\"tag warn\">symbolic link</span>";
  if (file->binary) {
    out += " <span class=\"tag\">binary, " +
           codec::HtmlText(HumanBytes(static_cast<double>(file->bytes))) + "</span>";
  } else if (file->added_lines > 0 || file->removed_lines > 0) {
    out += " <span class=\"plus\">+" + HumanCount(file->added_lines) +
           "</span> <span class=\"minus\">−" + HumanCount(file->removed_lines) + "</span>";
  }
  return out;
}

}  // namespace

std::string RenderPatchHtml(const std::string& patch, const std::vector<ChangedFile>& files) {
  const std::vector<Part> parts = SplitParts(patch);
  std::string out;
  size_t left = kLinesMax;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (left == 0) {
      out += "<p>… and " + Plural(static_cast<int64_t>(parts.size() - i), "file") +
             " more in <code>changes.patch</code></p>\n";
      break;
    }
    const ChangedFile* file = files.size() == parts.size() ? &files[i] : nullptr;
    const bool binary = file != nullptr && file->binary;
    const size_t lines = std::min(left, binary ? size_t{4} : parts[i].lines.size());
    left -= lines;
    out += std::string("<details class=\"file\"") +
           (lines <= kOpenLinesMax && !binary ? " open" : "") + "><summary>" +
           Title(parts[i], file) + "</summary><pre class=\"patch\">" +
           RenderLines(parts[i], lines, file != nullptr) + "</pre></details>\n";
  }
  return out;
}

}  // namespace report
