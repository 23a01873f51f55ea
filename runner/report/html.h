// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/record.h"

namespace report {

// Renders report.html: one file that loads nothing and runs nothing; its tabs are links and style.
// All text from outside is escaped; long parts are cut and say so, whatever the run: about 6000
// lines of the patch, 1000 steps of the transcript, the last 128 KiB of the log.
std::string RenderHtml(const ReportInput& input);

}  // namespace report
