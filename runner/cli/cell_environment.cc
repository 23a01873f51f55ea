// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "base/sys.h"
#include "cli/eval_command.h"
#include "forge/event.h"

extern char** environ;

namespace cli {
namespace {

// Returns whether a variable is about this process's own CI event, which is not about the cells.
bool IsOfEvent(std::string_view name) {
  return forge::ShowsCi(name) || name == "INPUTS" || name == "PATH" ||
         name.starts_with("GITHUB_") || name.starts_with("GITLAB_") || name.starts_with("CI_") ||
         name.starts_with("AGENTIC_CI_");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CellEnvironment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    std::string_view text(*one);
    size_t equals = text.find('=');
    if (equals == std::string_view::npos || IsOfEvent(text.substr(0, equals))) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Result<std::string> AbsoluteOf(const std::string& path) {
  return sys::RealPath(path).Context("reading " + path);
}

}  // namespace cli
