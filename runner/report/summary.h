// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "report/record.h"

namespace report {

struct SummaryOptions {
  size_t bytes_max =
      60000;  // GitHub's comment bound is 65 536 characters; a step summary takes 1 MiB.
  std::string report_url = {};  // Where the whole report lies: https, or it is not said.
};

// The report as Markdown for a step summary or a comment: outcome first, then what changed, what
// was refused and the line that would allow it, limits, isolation, cost. All text from outside is
// neutral.
std::string RenderSummary(const ReportInput& input, const SummaryOptions& options = {});

}  // namespace report
