// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_file.h"

#include "base/sys.h"

namespace cli {

std::string FindRepositoryFile(const std::string& path) {
  constexpr size_t kDirectoriesMax = 64;  // Above this one.
  for (std::string directory; directory.size() < 3 * kDirectoriesMax; directory += "../") {
    if (sys::Exists(directory + path)) return directory + path;
    if (sys::Exists(directory + ".git")) break;
  }
  return {};
}

}  // namespace cli
