// SPDX-License-Identifier: Apache-2.0
// A part of a job's log that the job's page folds, where there is such a thing: GitLab's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "forge/event.h"

namespace forge {

// The beginning and the end of a section: a line each, or empty if the log has no sections. The
// page shows it folded, by its `title` (one line, not from outside). `name` has [a-z_] only.
// Nothing in between can end it but the escape sequence in these lines.
struct LogSection {
  std::string begin;
  std::string end;
};
LogSection MakeLogSection(const EnvironmentReader& environment, std::string_view name,
                          std::string_view title, int64_t now_s);

}  // namespace forge
