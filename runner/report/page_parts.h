// SPDX-License-Identifier: Apache-2.0
// The parts of report.html. Everything from outside passes through Text or CodeText.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/record.h"

namespace report::page {

inline constexpr size_t kRowsMax = 500;

// Returns `text` escaped, without credentials, bounded.
std::string Text(std::string_view text, size_t bytes_max = 2000);
std::string CodeText(std::string_view text);
// Returns the same as Text; what stands between two backticks is code.
std::string SentenceText(std::string_view text, size_t bytes_max);
// Returns a page up to its body: without scripts, forms and other sites. `title` is HTML, `style`
// what is added to the style sheet.
std::string PageHead(const std::string& title, std::string_view style = "");
// Returns a headed box. `title` is HTML.
std::string Card(std::string_view title, const std::string& body, std::string_view id = "");
std::string Tag(std::string_view kind, std::string_view text);
// Returns "… and 12 more in changes.json", where there are more than were shown.
std::string MoreRows(size_t all, size_t shown, std::string_view where);

// The patch, and where in it each finding is shown: "x3" for RunRecord::findings[3].
struct ChangesHtml {
  std::string html;
  std::map<size_t, std::string> anchors;
};
// Returns the link to where the finding is shown in the patch; empty if it is not.
std::string LinkTo(size_t finding, const ChangesHtml& changes);

// One thing to look at. All but `kind` and `classes` is HTML.
struct CauseHtml {
  std::string_view kind;  // "bad", "warn" or "soft".
  std::string_view sign;
  std::string what;
  std::string advice = {};
  std::string link = {};
  std::string classes = {};
};
std::string CauseRow(const CauseHtml& cause);
// Returns the finding's rule, place and message. The place is a link where the forge has the file.
std::string FindingText(const RunRecord& record, const Finding& finding);
// Returns the findings that did not refuse the run.
std::string RenderFindings(const RunRecord& record, const ChangesHtml& changes);

ChangesHtml RenderChanges(const ReportInput& input);
std::string RenderVerdict(const ReportInput& input, const ChangesHtml& changes);
std::string RenderNetwork(const ReportInput& input);
std::string RenderTranscript(const ReportInput& input);
std::string RenderSandbox(const RunRecord& record);

}  // namespace report::page
