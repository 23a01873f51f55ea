// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/record.h"

namespace report {

// Writes run.json, changes.patch, changes.json, findings.sarif, gl-code-quality-report.json,
// gl-sast-report.json, policy-suggestion.yml, summary.md, report.html and conflicts/ into
// `directory`, which exists. Each file appears whole or not at all; run.json last, so its presence
// says that the others are there. The files that grow during a run (events.ocsf.jsonl, events.log,
// agent.jsonl, agent.log) are not touched. Fails with kIo (a full disk, ...).
Status WriteReport(const std::string& directory, const ReportInput& input);

// Writes each file into `directory`/conflicts, as a plain file, in place of what has its name
// there: never through a link. Fails with kIo.
Status WriteConflicts(const std::string& directory, const std::vector<ConflictFile>& conflicts);

// Writes the file `name` of `directory` whole or not at all, in place of whatever has that name:
// never through a link, and never into a pipe. Fails with kIo.
Status WriteWhole(int directory, const std::string& name, std::string_view bytes);

// Writes less of the report after WriteReport has failed: takes away what it wrote, and writes
// changes.patch, changes.json, summary.md and run.json alone; if they do not fit either, the same
// without a patch, incomplete; or else nothing. Returns false if there is a patch that is not
// there.
bool WriteLess(const std::string& directory, ReportInput input);

}  // namespace report
