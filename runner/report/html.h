// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/record.h"

namespace report {

// report.html: one file that loads nothing and runs nothing. All text from outside is escaped; at
// most 6000 lines of the patch are shown.
std::string RenderHtml(const ReportInput& input);

// The patch as HTML, one foldable block per file. Titles come from `files` when they are as many as
// the patch's parts, otherwise from the patch.
std::string RenderPatchHtml(const std::string& patch, const std::vector<ChangedFile>& files);

}  // namespace report
