// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace image {

// One authentication scheme that a service offers: RFC 9110, 11.3.
struct Challenge {
  std::string scheme;                                           // Lower case: "bearer", "basic".
  std::vector<std::pair<std::string, std::string>> parameters;  // Names in lower case.

  // Returns the first of that name, or "".
  std::string Parameter(std::string_view name) const;
};

// Parses the challenges of one WWW-Authenticate header: there may be several, with quoted strings,
// escapes and commas in them. Stops at the first malformed one; those before it count.
std::vector<Challenge> ParseChallenges(std::string_view header);

}  // namespace image
