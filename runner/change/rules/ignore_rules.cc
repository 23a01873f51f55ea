// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_rules.h"

#include <algorithm>
#include <string_view>

namespace change {
namespace {

// A directory's name in a pattern: what has a meaning there is taken literally.
std::string Literal(std::string_view name) {
  std::string literal;
  for (char c : name) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) literal += '\\';
    literal += c;
  }
  return literal;
}

}  // namespace

std::string RulesAtTop(const std::string& rules, const std::string& directory) {
  std::string text;
  for (std::string_view rest = rules; !rest.empty();) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    if (directory.empty()) {
      (text += line) += '\n';
      continue;
    }
    bool negated = line.front() == '!';
    if (negated) line.remove_prefix(1);
    // With a slash before its end, a pattern is relative to the file's own directory.
    std::string_view body = line.substr(0, line.find_last_not_of(" \t/") + 1);
    if (body.empty()) continue;
    bool anchored = body.find('/') != std::string_view::npos;
    if (line.front() == '/') line.remove_prefix(1);
    if (negated) text += '!';
    ((((text += '/') += Literal(directory)) += anchored ? "" : "**/") += line) += '\n';
  }
  return text;
}

}  // namespace change
