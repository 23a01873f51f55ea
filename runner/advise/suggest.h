// SPDX-License-Identifier: Apache-2.0
// Turns refused requests into policy entries that would allow exactly them. Pure: denials and a
// policy in, suggestions out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  // "mcp", or "websocket" for handshakes and messages ("WEBSOCKET_TEXT"); policy::kHostedProtocol
  // if the operations are tools of a model's provider.
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

// Returns the one line that would allow `denial`. For what reads, that is one of an `endpoints:`
// list ("host:443:read-only"). Such a list has none for one request that writes: the narrowest
// would allow all that write to the host. For those, and for what an endpoint judges by operation,
// it is the rule for that request or operation, of the full form ("rules: [{allow: {method: 'PUT',
// path: '/a'}}]"). For tools of a model's provider it is the key "hosted_tools: [...]". Empty if no
// policy can allow it (loopback, metadata addresses), no rule just it, or the line alone would not
// (advise/explain.h).
std::string SuggestLine(const Denial& denial);
// Returns whether a line of SuggestLine() is a rule of the full form, or a key of its own, and none
// of an `endpoints:` list.
bool IsRuleLine(std::string_view line);

// SuggestLine() for each of `denials`; a name that was asked for has that of a request to it, and
// what reads that of another one to the same place.
std::vector<std::string> SuggestLines(const std::vector<Denial>& denials);

// Returns a complete `network_policies` fragment with comments that would allow exactly these
// attempts: the content of policy-suggestion.yml. Empty if there is nothing to suggest.
std::string SuggestPolicy(const std::vector<Denial>& denials);

}  // namespace advise
