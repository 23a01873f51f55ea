// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "base/sys.h"
#include "cli/eval_command.h"
#include "forge/open/open.h"

extern char** environ;

namespace cli {
namespace {

// Returns whether a variable is about this process's own CI event, which is not about the cells.
bool IsOfEvent(std::string_view name) {
  return forge::IsOfCi(name) || name == "INPUTS" || name == "PATH" ||
         (name.starts_with("AGENTIC_CI_") && name != "AGENTIC_CI_PROXY_BY_NAME");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CellEnvironment(
    const std::vector<std::string>& credentials) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    std::string_view text(*one);
    size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    const bool read = std::find(credentials.begin(), credentials.end(), name) != credentials.end();
    if (IsOfEvent(name) && (!read || forge::ShowsCi(name))) continue;
    variables.emplace_back(name, text.substr(equals + 1));
  }
  return variables;
}

Result<std::string> AbsoluteOf(const std::string& path) {
  return sys::RealPath(path).Context("reading " + path);
}

}  // namespace cli
