// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace policy {

// One refused attempt, as the records tell it.
struct Denial {
  std::string host;
  uint16_t port = 0;
  std::string method;  // Empty: the connection itself was refused.
  std::string path;    // Canonical, or empty.
  std::string binary;

  friend bool operator==(const Denial&, const Denial&) = default;
};

// The one line that would allow `denial` in an `endpoints:` file ("host:443:read-only"), or empty
// where no policy can allow it (loopback, metadata addresses).
std::string SuggestLine(const Denial& denial);

// A complete `network_policies` fragment with comments that would allow exactly these attempts:
// the content of policy-suggestion.yml. Empty when there is nothing to suggest.
std::string SuggestPolicy(const std::vector<Denial>& denials);

}  // namespace policy
