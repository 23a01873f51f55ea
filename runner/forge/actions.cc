// SPDX-License-Identifier: Apache-2.0
#include "forge/actions.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace forge {
namespace {

constexpr std::array<Level, 3> kLevels = {Level::kError, Level::kWarning, Level::kNotice};
constexpr size_t kMaskedLineMin = 4;  // A shorter mask would blank out half of the log.

std::string_view CommandOf(Level level) {
  switch (level) {
    case Level::kError:
      return "error";
    case Level::kWarning:
      return "warning";
    case Level::kNotice:
      break;
  }
  return "notice";
}

// The runner's own escapes for a command's data, and for its properties, which ':' and ',' end.
std::string Escape(std::string_view text, bool property) {
  std::string escaped;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '%') {
      escaped += "%25";
    } else if (c == '\r') {
      escaped += "%0D";
    } else if (c == '\n') {
      escaped += "%0A";
    } else if (property && c == ':') {
      escaped += "%3A";
    } else if (property && c == ',') {
      escaped += "%2C";
    } else if ((byte >= 0x20 && byte != 0x7f) || c == '\t') {
      escaped += c;
    }
  }
  return escaped;
}

std::string RenderAnnotation(const Annotation& annotation) {
  std::vector<std::string> properties;
  if (!annotation.file.empty()) {
    properties.push_back("file=" + Escape(annotation.file, true));
    if (annotation.line > 0) properties.push_back("line=" + std::to_string(annotation.line));
    if (annotation.end_line > annotation.line) {
      properties.push_back("endLine=" + std::to_string(annotation.end_line));
    }
  }
  if (!annotation.title.empty()) properties.push_back("title=" + Escape(annotation.title, true));
  std::string line = "::" + std::string(CommandOf(annotation.level));
  for (size_t i = 0; i < properties.size(); ++i) line += (i == 0 ? " " : ",") + properties[i];
  return line + "::" + Escape(annotation.message, false) + "\n";
}

}  // namespace

std::string RenderAnnotations(const std::vector<Annotation>& annotations) {
  std::string lines;
  for (Level level : kLevels) {
    std::vector<const Annotation*> of_level;
    for (const Annotation& annotation : annotations) {
      if (annotation.level == level) of_level.push_back(&annotation);
    }
    bool all = of_level.size() <= kAnnotationsPerLevelMax;
    size_t shown = all ? of_level.size() : kAnnotationsPerLevelMax - 1;
    for (size_t i = 0; i < shown; ++i) lines += RenderAnnotation(*of_level[i]);
    if (all) continue;
    Annotation rest;
    rest.level = level;
    rest.message =
        std::to_string(of_level.size() - shown) + " more at this level are in the report";
    lines += RenderAnnotation(rest);
  }
  return lines;
}

std::string RenderMask(std::string_view secret) {
  std::string lines;
  bool one_line = secret.find('\n') == std::string_view::npos;
  while (!secret.empty()) {
    size_t end = secret.find('\n');
    std::string_view line = secret.substr(0, end);
    secret.remove_prefix(end == std::string_view::npos ? secret.size() : end + 1);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || (!one_line && line.size() < kMaskedLineMin)) continue;
    lines += "::add-mask::" + Escape(line, false) + "\n";
  }
  return lines;
}

std::string RenderGroupBegin(std::string_view title) {
  return "::group::" + Escape(title, false) + "\n";
}

std::string RenderGroupEnd() { return "::endgroup::\n"; }

std::string RenderStopCommands(std::string_view word) {
  return "::stop-commands::" + std::string(word) + "\n";
}

std::string RenderResumeCommands(std::string_view word) {
  // The command stands on a line of its own even where the agent's text did not end in a newline.
  return "\n::" + std::string(word) + "::\n";
}

Result<std::string> RenderOutputs(const std::vector<std::pair<std::string, std::string>>& outputs,
                                  std::string_view word) {
  std::string lines;
  for (const auto& [name, value] : outputs) {
    if (name.empty() ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
      return Error{Code::kInvalid, "invalid output name: '" + name + "'"};
    }
    if (word.empty() || value.find(word) != std::string::npos) {
      return Error{Code::kBug, "output " + name + " contains its own delimiter"};
    }
    lines += name + "<<" + std::string(word) + "\n" + value + "\n" + std::string(word) + "\n";
  }
  return lines;
}

std::string RenderStepSummary(std::string_view markdown, size_t bytes_there) {
  constexpr std::string_view kNote = "\n\n> Truncated here: the step summary is full.\n";
  size_t room = kStepSummaryBytesMax - std::min(bytes_there, kStepSummaryBytesMax);
  if (markdown.size() <= room) return std::string(markdown);
  if (room <= kNote.size()) return "";
  std::string_view kept = markdown.substr(0, room - kNote.size());
  size_t line_end = kept.rfind('\n');
  if (line_end == std::string_view::npos) return "";
  return std::string(kept.substr(0, line_end + 1)) + std::string(kNote);
}

}  // namespace forge
