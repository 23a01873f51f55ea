// SPDX-License-Identifier: Apache-2.0
// run.json and changes.json: records to JSON and back. docs/reference/schemas/ describes both.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/record.h"

namespace report {

inline constexpr int kRecordVersion = 1;  // "version" in both files; a reader refuses any other.

// The agent's last word travels in run.json too, so that `post` needs no further file.
struct RunFile {
  RunRecord record;
  std::string agent_text;
  std::vector<std::string> agent_tail = {};
};

// Both can be parsed again: lists end after 20,000 entries, and where all lists of the file have
// 8 MiB.
std::string RenderRun(const RunFile& run);
std::string RenderChanges(const ChangesRecord& totals, const std::vector<ChangedFile>& files);

// Replaces every text of a report but the patch by what `edit` makes of it.
void EditTexts(const std::function<std::string(std::string_view)>& edit, ReportInput* input);

// Parses strictly: every member that RenderRun writes must be there with its type and within
// bounds; members of other names are passed over. Fails with kInvalid and the member's place:
// "outcome.kind: ...".
Result<RunFile> ParseRun(std::string_view json);
Result<std::vector<ChangedFile>> ParseChanges(std::string_view json);

}  // namespace report
