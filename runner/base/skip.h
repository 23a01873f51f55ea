// SPDX-License-Identifier: Apache-2.0
// For unit tests: Catch2's version 2 has no word for a test that cannot run.
#pragma once

#include <catch2/catch.hpp>

// Ends a test case that cannot run on this machine. `reason` begins with what is missing and a
// colon; tools/check counts the case as skipped, or as failed where that is required.
#define SKIP(reason)        \
  do {                      \
    WARN("# SKIP " reason); \
    return;                 \
  } while (false)
