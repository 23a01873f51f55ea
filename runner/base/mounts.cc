// SPDX-License-Identifier: Apache-2.0
#include "base/mounts.h"

#include <sstream>

#include "base/sys.h"

namespace sys {
namespace {

// A container binds its own /etc/hosts; a host has a few dozen mounts, a busy one a few thousand.
constexpr size_t kMountInfoBytesMax = 8 << 20;

// The octal escapes of proc(5), mountinfo: space, tab, newline and backslash.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size()) {
      plain += static_cast<char>(((text[at + 1] - '0') << 6) + ((text[at + 2] - '0') << 3) +
                                 (text[at + 3] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace

std::vector<Mount> ReadMounts() {
  std::vector<Mount> mounts;
  Result<std::string> text = ReadFile("/proc/self/mountinfo", kMountInfoBytesMax);
  if (!text.ok()) return mounts;
  std::istringstream lines(text.value());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id;
    Mount mount;
    fields >> id >> id >> mount.device >> mount.root >> mount.point;
    mounts.push_back({std::move(mount.device), Unescape(mount.root), Unescape(mount.point)});
  }
  return mounts;
}

}  // namespace sys
