// SPDX-License-Identifier: Apache-2.0
// A report of a run that has ended, as lines for a person, and two of them side by side. All of it
// is harmless text; the reports are read as hostile input (report/read.h).
#pragma once

#include <string>

#include "base/result.h"

namespace watch {

// Renders the report in `directory`: each different request, each changed file, each finding, and
// how the run ended. Fails as report::ReadReport() does.
Result<std::string> RenderReport(const std::string& directory);

// Renders what the run of `after` did otherwise than that of `before`, both directories of reports:
// findings that are gone ("-") and new ("+"), told apart by report::Fingerprint(); hosts that were
// asked, whether they were allowed, and changed files likewise; and what models cost. Fails as
// RenderReport() does.
Result<std::string> RenderReportDifference(const std::string& before, const std::string& after);

}  // namespace watch
