// SPDX-License-Identifier: Apache-2.0
#include "caller/program_links.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/sys.h"

namespace caller {
namespace {

constexpr size_t kTargetsMax = 4096;  // A policy's binaries are a few dozen.

void Follow(const std::string& path, int root, ProgramLinks& links) {
  Result<Fd> end = sys::OpenInRoot(root, path, O_PATH);
  if (!end.ok()) {
    bool there = sys::OpenInRoot(root, path, O_PATH | O_NOFOLLOW).ok();
    if (there || end.error().code != Code::kNotFound) links.warnings.push_back(end.error().what);
    return;
  }
  std::optional<std::string> target =
      sys::ReadLink("/proc/self/fd/" + std::to_string(end.value().get()));
  if (target.has_value() && *target != path) links.by_target[*target].push_back(path);
}

}  // namespace

ProgramLinks FollowProgramLinks(const policy::Policy& policy, int root) {
  std::set<std::string> paths;
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const std::string& binary : network.binaries) {
      bool literal = binary.starts_with("/") && binary.find('*') == std::string::npos;
      if (literal && paths.size() < kTargetsMax) paths.insert(binary);
    }
  }
  ProgramLinks links;
  for (const std::string& path : paths) Follow(path, root, links);
  return links;
}

}  // namespace caller
