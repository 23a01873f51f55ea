// SPDX-License-Identifier: Apache-2.0
// A report directory that holds nothing but events, for tests.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"

namespace report {

// Returns what `read` makes of a directory whose events.ocsf.jsonl is `jsonl`.
template <typename Read>
auto FromEvents(Read read, std::string_view jsonl) {
  char directory[] = "/tmp/report_events_XXXXXX";
  ENSURE(::mkdtemp(directory) != nullptr);
  ENSURE(sys::WriteFile(std::string(directory) + "/events.ocsf.jsonl", jsonl).ok());
  auto result = read(directory);
  std::filesystem::remove_all(directory);
  ENSURE(result.ok());
  return std::move(result).value();
}

}  // namespace report
