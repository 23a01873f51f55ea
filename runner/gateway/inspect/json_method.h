// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "gateway/inspect/named_method.h"

namespace gateway {

// Asks `judge` about each method that a member of the outermost object names (RFC 8259), as
// Laravel and Express may read it. What is no JSON passes: no server finds a member in it.
std::unique_ptr<StreamFilter> NewJsonMethodFilter(MethodJudge judge);

}  // namespace gateway
