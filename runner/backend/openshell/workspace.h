// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/prepare.h"

namespace openshell {

// Paths that the agent is not to have, absolute and without links: files of credentials, those of
// the gateway's certificates, and the report. Not all of them lie in the checkout.
std::vector<std::string> HiddenPaths(const run::Plan& plan, const run::Request& request,
                                     const std::string& report_dir);

// Copies the checkout into the new directory `to`, as the agent is to have it: without the
// credentials that git's configuration holds, with the trusted commit's agent instructions, and
// without what is `hidden`. Fails with kUnsupported if it is larger than `bytes_max`.
Status StageWorkspace(const run::Plan& plan, const std::vector<std::string>& hidden,
                      int64_t bytes_max, const std::string& to);

}  // namespace openshell
