// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/operation_rule.h"

namespace advise {

// One refused attempt, as the records tell it.
struct Denial {
  std::string host;
  uint16_t port = 0;
  std::string method;  // Empty if the connection itself was refused.
  std::string path;    // Canonical, or empty.
  std::string binary;
  // The endpoint's protocol, if it judged by more than method and path: "graphql", "json-rpc",
  // "mcp", or "websocket" for handshakes and messages ("WEBSOCKET_TEXT").
  std::string protocol = {};
  std::vector<policy::Operation> operations = {};  // The operations that it carried.
  // The ancestors of `binary`, nearest first, as far as known.
  std::vector<std::string> ancestors = {};
  int64_t count = 1;  // The number of times it was refused,
  int64_t runs = 1;   // and of the runs in which it was.

  friend bool operator==(const Denial&, const Denial&) = default;
};

// The method by which records name the refusal of a name (Denial::method): no connection came of
// it.
inline constexpr char kNameAsked[] = "DNS";

// Describes the programs that asked, and how often, for a comment: "refused 3 times in 2 runs:
// /usr/bin/curl (from /bin/sh)". Only the programs that asked most often; one line, whatever they
// are called.
std::string DescribeOrigin(const std::vector<Denial>& denials);

// The protocol of a client that speaks neither TLS nor HTTP (Denial::protocol): an endpoint for
// HTTP does not help it, even with `full` access.
inline constexpr char kRawConnection[] = "tcp";
// True for a raw connection, and for one to a port that such clients use, if it was refused before
// its first bytes were seen.
bool IsRawConnection(const Denial& denial);

// The text of a comment beside suggestions, wherever they are shown.
inline constexpr char kSuggestionWarning[] =
    "Each entry opens a way for data to leave, and a manipulated agent asks for what its attacker "
    "wants.";

// Returns the denials as attempts that a policy could allow. A name that was asked for becomes a
// connection to its port 443, or nothing where more is known of the same host.
std::vector<Denial> WithoutNames(const std::vector<Denial>& denials);

// Returns the one line that would allow `denial`: in an `endpoints:` file ("host:443:read-only"),
// or for what an endpoint judges by operation in that endpoint ("rules: [{allow: {operation_type:
// ...}}]"). Empty if no policy can allow it (loopback, metadata addresses), no rule just it, or the
// line alone would not (advise/explain.h).
std::string SuggestLine(const Denial& denial);

// SuggestLine() for each of `denials`; of those for one host and port all have the line with the
// widest access among them, so that no two contradict each other.
std::vector<std::string> SuggestLines(const std::vector<Denial>& denials);

// Returns a complete `network_policies` fragment with comments that would allow exactly these
// attempts: the content of policy-suggestion.yml. Empty if there is nothing to suggest.
std::string SuggestPolicy(const std::vector<Denial>& denials);

}  // namespace advise
