// SPDX-License-Identifier: Apache-2.0
// Decisions as pure total functions from values to values: no clock, no socket, no errors. They
// compile the policy for each question, for who asks once; the gateway keeps a CompiledPolicy
// (compiled.h), where the rules themselves are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/position.h"
#include "policy/model/destination.h"
#include "policy/model/policy.h"

namespace policy {

// Who opened the connection: the executable, then the executables of its ancestors, nearest first.
// `cmdline` holds absolute paths from the argument vectors; they appear in messages, they never
// grant.
struct Caller {
  std::string binary;
  std::vector<std::string> ancestors;
  std::vector<std::string> cmdline;
  // Paths that a policy may name these programs by: symbolic links in the sandbox that lead to
  // them. They count for exact paths only, not for globs.
  std::vector<std::string> links = {};
  // The agent, or started by it: what kAgentPrograms means, whichever programs these are.
  bool agent = false;
};

struct Decision {
  bool allowed = false;
  bool audited = false;       // Allowed only because the endpoint is in audit; a rule said no.
  std::string policy;         // Name of the policy that decided; "-" when none matched.
  std::string reason;         // Why, in OpenShell's words.
  codec::Position at;         // The line that decided, when there is one.
  bool by_deny_rule = false;  // And it is a deny rule's.
};

// May `caller` connect to host:port at all?
// `host` is a DNS name or an address literal without brackets, any case, without a trailing dot.
Decision DecideConnection(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller);

// What the endpoints that cover host:port ask of the gateway. Meaningful only after
// DecideConnection allowed the connection.
Handling DescribeHandling(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller);

// One HTTP request inside an allowed connection. `path` is canonical (codec/wire/http_target.h);
// `query` is the raw text behind '?', empty when there is none.
struct HttpRequest {
  std::string_view method;
  std::string_view path;
  std::string_view query;
  // The request asks for a WebSocket: GET and the fields of RFC 6455.
  bool websocket_upgrade = false;
};

// A connection that only L4 endpoints cover allows every request. Otherwise a matching rule of an
// endpoint whose path selector matches must allow it, and no deny rule of any may fire.
Decision DecideRequest(const Policy& policy, std::string_view host, uint16_t port,
                       const Caller& caller, const HttpRequest& request);

}  // namespace policy
