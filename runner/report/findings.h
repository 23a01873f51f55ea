// SPDX-License-Identifier: Apache-2.0
// Findings in the formats that forges read: SARIF for GitHub, Code Quality and SAST for
// GitLab.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/record.h"

namespace report {

// Sorts findings as people read them: the runner's own before the agent's, which can be as many as
// it likes; among each, first those that refused, then by severity. Borrows the findings.
std::vector<const Finding*> InOrder(const std::vector<Finding>& findings);

// Returns every finding of the record in that order, then each denied request as one (rule
// "egress-denied"). Paths are relative to the repository; a path that is not plainly relative is
// left out, with its line. At most 5000, GitHub's bound.
std::vector<Finding> ListFindings(const RunRecord& record);

// Returns the policy's file in the repository: the run's, if it was from there, else the place that
// one belongs to.
std::string PolicyFileOf(const RunRecord& record);

// Returns the same, each with a path, since both forges' formats drop what stands nowhere: where a
// finding has none, the policy file, which is where a reader would act.
std::vector<Finding> AllFindings(const RunRecord& record);

// Returns 32 hex digits, the same for the same rule, path and message in later runs (the line may
// move); `occurrence` distinguishes equal findings within one list.
std::string Fingerprint(const Finding& finding, int occurrence);

// The lines of a finding are found by their text in another version of the file. LinesInDigest
// returns how many of those from `line` to `end_line` count (at most 20), LinesDigest the SHA-256
// of that many, each given without its newline.
size_t LinesInDigest(int line, int end_line);
std::string LinesDigest(std::span<const std::string_view> lines);

// Returns what GitHub's code scanning finds alerts at these lines of a file again by, though the
// lines move: `primaryLocationLineHash` ("hash:count") as github/codeql-action computes it. `lines`
// start at 1; one that the file does not have is left out.
std::map<int, std::string> LineHashes(std::string_view text, const std::set<int>& lines);

// Renders SARIF 2.1.0 with what GitHub asks for on top (each rule with fullDescription and help).
// `job_key` goes into the category: of two logs of one commit and category, GitHub keeps the second
// and closes the alerts of the first. At most 5000 results, GitHub's bound.
std::string RenderSarif(const RunRecord& record, const std::string& job_key);

// Renders GitLab's Code Quality format: a JSON array. GitLab stops reading at the first item that
// is not valid, so every item is.
std::string RenderCodeQuality(const RunRecord& record);

// Renders GitLab's report of static analysis, of version 15.0.7 of its schema: what the agent found
// in files. Leaves out what the gates and the gateway refused, since it is not about the code.
std::string RenderSast(const RunRecord& record);

// Returns `message` as the text of a message in SARIF, where "[text](target)" is a link unless the
// brackets are escaped (SARIF 2.1.0, 3.11.6).
std::string SarifText(std::string_view message);

}  // namespace report
