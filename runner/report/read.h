// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "report/record.h"

namespace report {

// A report as `agentic-ci post` reads it back: well formed and bounded, and still not to be
// believed.
struct PostedReport {
  RunRecord record;
  std::vector<ChangedFile> files;
  std::string patch;             // Empty when the report has none.
  std::string summary_markdown;  // summary.md's rendering made anew from the values, at most 60 000
                                 // bytes: the file of that name is never trusted.
};

// Reads run.json, changes.json, changes.patch and the agent's text from `directory` as hostile
// input: no symbolic link is followed, sizes and counts are bounded, types are strict. Fails with
// kNotFound when there is no report, with kInvalid and "file: what" when it is not one.
Result<PostedReport> ReadReport(const std::string& directory);

}  // namespace report
