// SPDX-License-Identifier: Apache-2.0
// For unit tests: Catch2 version 2 cannot mark a test as skipped.
#pragma once

#include <catch2/catch.hpp>

// Ends a test case that cannot run on this machine. `reason` begins with what is missing and a
// colon; tools/check counts the case as skipped, or as failed where that is required.
#define SKIP(reason)        \
  do {                      \
    WARN("# SKIP " reason); \
    return;                 \
  } while (false)
