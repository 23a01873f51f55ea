// SPDX-License-Identifier: Apache-2.0
// A server outside of the sandbox of which a policy allows GET /open/** and nothing else. It reads
// as leniently as servers do that are confused by requests, and says what came.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace redteam {

// A request that came to the server.
struct Arrival {
  std::string method;
  std::string target;
  std::string host;
  std::string upgrade;  // The value of the header of that name.
};

// Takes whole requests from the front of `bytes`.
std::vector<Arrival> TakeRequests(std::string* bytes);

// Answers every request that comes to `listener`, and prints a line for each, until it is killed.
Status Serve(const Fd& listener);

// Returns the lines of Serve(); others are passed over.
std::vector<Arrival> ReadArrivals(std::string_view log);

// Returns whether `arrival` belongs to the probe `id` and is what the policy does not allow. `host`
// is the only right one.
bool IsForbidden(const Arrival& arrival, std::string_view id, std::string_view host);

}  // namespace redteam
