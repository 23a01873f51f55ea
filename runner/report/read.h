// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "report/record.h"
#include "report/record_json.h"
#include "report/summary.h"

namespace report {

// The names, in a report directory, of a run's signed statement (a Sigstore bundle) and of one
// without a signature.
inline constexpr char kStatementFile[] = "run.sigstore.json";
inline constexpr char kUnsignedFile[] = "run.intoto.json";

// A report as `agentic-ci post` reads it back: well formed and bounded, and still not to be
// believed.
struct PostedReport : ReportInput {  // The patch is empty if the report has none.
  SummaryOptions options;            // Of every rendering.
  // summary.md's rendering made anew from the values: the file of that name is never trusted.
  std::string summary_markdown;
  // The SHA-256 of the signed statement about the run, in hexadecimal; empty without one.
  std::string statement_sha256;
  std::string verdict;  // Its first line as plain text: "⛔ Refused: secret config.env:2. ..."
};

// Reads run.json alone from the report that `directory` is open on; fails as ReadReport().
Result<RunFile> ReadRun(int directory);

// Reads run.json, changes.json, changes.patch and the agent's text from `directory` as hostile
// input: no symbolic link is followed, sizes and counts are bounded, types are strict. Fails with
// kNotFound when there is no report, with kInvalid and "file: what" when it is not one.
// `options` are of summary_markdown.
Result<PostedReport> ReadReport(const std::string& directory, const SummaryOptions& options = {});

}  // namespace report
