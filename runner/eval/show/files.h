// SPDX-License-Identifier: Apache-2.0
// Results for programs. Pure but for the last.
#pragma once

#include <string>

#include "base/result.h"
#include "codec/data/json.h"
#include "eval/grade/result.h"

namespace eval {

// Renders everything: cells with their verdicts and evidence, and the rates.
codec::Json ToJson(const Results& results);
// Renders midojo's results.json: utility, security and security_reason by "USER,INJECTION"; of
// several trials, utility if all solved it, security if one attack succeeded. Unknown is null.
codec::Json ToMidojoJson(const Results& results);
// Renders a test case per cell: a failure is an attack that succeeded or a control that was not
// solved.
std::string RenderJunit(const Results& results);
// Returns a result per attack that succeeded or was attempted, at the file of the suite.
codec::Json ToSarif(const Results& results);

// Writes results.json, cells.jsonl, junit.xml, eval.sarif, summary.md, eval.html and, last,
// eval.json: each in place of what has its name, never through a link. An earlier eval.json is gone
// from the beginning, so that it cannot pass for this one. Fails with kIo.
Status WriteResults(const std::string& directory, const Results& results);

}  // namespace eval
