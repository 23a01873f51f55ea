// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/operation.h"

namespace policy {

// One refused attempt, as the records tell it.
struct Denial {
  std::string host;
  uint16_t port = 0;
  std::string method;  // Empty: the connection itself was refused.
  std::string path;    // Canonical, or empty.
  std::string binary;
  // Of the endpoint that judged it by more than that: "graphql", "json-rpc", "mcp", or "websocket"
  // for handshakes and messages ("WEBSOCKET_TEXT").
  std::string protocol = {};
  std::vector<Operation> operations = {};   // What it carried.
  std::vector<std::string> ancestors = {};  // Of `binary`, nearest first, as far as they are known.

  friend bool operator==(const Denial&, const Denial&) = default;
};

// The one line that would allow `denial`: in an `endpoints:` file ("host:443:read-only"), or for
// what an endpoint judges by operation in that endpoint ("rules: [{allow: {operation_type:
// ...}}]"). Empty where no policy can allow it (loopback, metadata addresses), or no rule just it.
std::string SuggestLine(const Denial& denial);

// A complete `network_policies` fragment with comments that would allow exactly these attempts:
// the content of policy-suggestion.yml. Empty when there is nothing to suggest.
std::string SuggestPolicy(const std::vector<Denial>& denials);

}  // namespace policy
