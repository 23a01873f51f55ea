// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sys {

// A line of /proc/self/mountinfo.
struct Mount {
  std::string device;  // "8:1": of the file system.
  std::string root;    // The directory of the file system that is mounted.
  std::string point;   // The place where this process sees it.
};

// Returns the mounts in the kernel's order: of two at one point, the later covers the other. Empty
// without a /proc.
std::vector<Mount> ReadMounts();

}  // namespace sys
