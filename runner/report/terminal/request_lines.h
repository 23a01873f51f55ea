// SPDX-License-Identifier: Apache-2.0
// The requests of a run as lines for a person, without colours: for a run or sandbox that goes on.
#pragma once

#include <string>
#include <vector>

#include "report/denials.h"

namespace report {

// Renders one entry for each different request, allowed ones first; of a refused one also the line
// of a policy that would allow it. Neutral, each line with its end. With `counted`, it says how
// often it was made, so an entry changes when that does. Where the list has not all of them, an
// entry says so.
std::vector<std::string> RenderRequests(const DenialList& list, bool counted);

}  // namespace report
