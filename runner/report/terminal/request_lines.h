// SPDX-License-Identifier: Apache-2.0
// The requests of a run as lines for a person, without colours: for a run or sandbox that goes on.
#pragma once

#include <string>
#include <vector>

#include "record/event.h"
#include "report/denials.h"

namespace report {

struct RequestEntry {
  record::Event::Outcome outcome = record::Event::Outcome::kNone;
  std::string text;

  friend bool operator==(const RequestEntry&, const RequestEntry&) = default;
};

// Renders one entry for each different request, allowed ones first; of a refused one also the line
// of a policy that would allow it. Neutral, each line with its end. With `counted`, it says how
// often it was made, so an entry changes when that does. Where the list has not all of them, an
// entry says so.
std::vector<RequestEntry> RenderRequests(const DenialList& list, bool counted);

}  // namespace report
