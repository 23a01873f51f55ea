// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "report/record_json.h"

namespace report::stats {

// Calls `take` with every report in or below `directory`: a directory that holds `run.json`. Looks
// eight directories deep, into no report (those of its checks belong to it), and follows no link
// below `directory`. Reports are read as ReadReport() reads them; the path of each comes with its
// run, or with the reason why it cannot be read. Fails with kNotFound if `directory` is not there.
Status ForEachReport(const std::string& directory,
                     const std::function<void(const std::string&, Result<RunFile>)>& take);

}  // namespace report::stats
