// SPDX-License-Identifier: Apache-2.0
#include "policy/model/own_places.h"

#include <algorithm>

namespace policy {
namespace {

// OpenShell's policies name these.
constexpr auto kAlwaysThere = std::to_array<std::string_view>(
    {"/dev", "/dev/fd", "/dev/full", "/dev/null", "/dev/ptmx", "/dev/pts", "/dev/random",
     "/dev/shm", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/urandom",
     "/dev/zero", "/run", "/sandbox", "/sys/devices/system/cpu", "/tmp", "/var/run"});

bool LiesIn(std::string_view path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

}  // namespace

std::string CleanPath(std::string_view path) {
  std::string clean;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (!part.empty() && part != ".") clean.append("/").append(part);
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return clean.empty() ? "/" : clean;
}

std::string OwnPlaceFault(std::string_view path) {
  if (LiesIn(path, "/proc") || LiesIn(path, "/sys/devices/system/cpu")) return {};
  if (std::find(kAlwaysThere.begin(), kAlwaysThere.end(), path) != kAlwaysThere.end()) return {};
  auto place = std::find_if(kOwnPlaces.begin(), kOwnPlaces.end(),
                            [&](std::string_view top) { return LiesIn(path, top); });
  if (place == kOwnPlaces.end()) return {};
  return std::string(*place) + " is the sandbox's own, and never the host's";
}

}  // namespace policy
