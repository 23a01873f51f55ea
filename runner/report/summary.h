// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "report/record.h"
#include "report/wording.h"

namespace report {

struct SummaryOptions {
  size_t bytes_max =
      60000;  // GitHub's comment bound is 65 536 characters; a step summary takes 1 MiB.
  // The URLs of the whole report and of the CI run: https, or they are not linked. Never from a
  // report.
  std::string report_url = {};
  std::string run_url = {};
  // The pages of the repository that the comment is in, likewise.
  WebPages pages = {};
  // Markdown of this program's: "2 fixed, 1 new since `ed864d1`"; may be empty.
  std::string since = {};
  // The findings that come first in their table, such as those that are shown in no other place.
  std::set<const Finding*> first = {};
};

// Renders the report as Markdown for a step summary or a comment: outcome and cause in the first
// line, then the run's figures and links, the worst findings, the agent's words where they are the
// result, the diff if it is small, and folded: findings, the diff otherwise, refused requests and
// what would allow them, the agent's words, the sandbox. A cut part says so. All text from outside
// is neutral.
std::string RenderSummary(const ReportInput& input, const SummaryOptions& options = {});

// Return the line, with its newline, that the finding has in the table or in the list of the worst
// ones. A summary that shows it has one of them.
std::string RenderFindingRow(const Finding& finding);
std::string RenderFindingItem(const Finding& finding);

}  // namespace report
