// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

// Every target of this folder; the build writes the list.
std::vector<FuzzTarget> FuzzTargets();
