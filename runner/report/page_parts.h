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
ChangesHtml RenderChanges(const ReportInput& input);
std::string RenderVerdict(const ReportInput& input, const ChangesHtml& changes);
std::string RenderNetwork(const ReportInput& input);
std::string RenderTranscript(const ReportInput& input);
std::string RenderSandbox(const RunRecord& record);

}  // namespace report::page
