// SPDX-License-Identifier: Apache-2.0
// Reads the findings that an agent reports by itself: a file it writes in the sandbox, validated
// outside.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/record.h"

namespace report {

// The file, at the top of the directory that the agent works in. It is not among the changes.
inline constexpr char kAgentFindingsFile[] = "agentic-ci-findings.json";
inline constexpr size_t kAgentFindingsBytesMax = size_t{4} << 20;
inline constexpr size_t kAgentFindingsMax = 1000;

// The valid findings of the file, and its mistakes: one line for each, at most 20, such as
// `findings[3].severity: "fatal" is not error, warning or note`.
struct AgentFindings {
  std::vector<Finding> findings;
  std::vector<std::string> mistakes;
};

// Reads either form: ours (docs/reference/schemas/findings.schema.json) or SARIF 2.1.0. `tops` are
// the paths at which the agent may have seen the checkout, absolute and canonical: a path or
// `file:` URL below one of them counts as the path from there. A finding with a mistake is left
// out; the others count. SARIF results that are suppressed (3.27.23), passed or no longer there
// are left out without a word. Never fails: a file that is not JSON is one mistake.
AgentFindings ParseAgentFindings(std::string_view text, std::span<const std::string> tops = {});

}  // namespace report
