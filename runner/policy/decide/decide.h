// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of decisions. The decisions themselves are CompiledPolicy's (compiled.h):
// pure total functions, without clock, socket or error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/position.h"
#include "policy/model/destination.h"
#include "policy/model/policy.h"

namespace policy {

// The programs that opened the connection: the executable, then the executables of its ancestors,
// nearest first. `cmdline` holds absolute paths from the argument vectors; they appear in messages,
// they never grant.
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

// One HTTP request inside an allowed connection. `path` is canonical (codec/wire/http_target.h);
// `query` is the raw text behind '?', empty if there is none.
struct HttpRequest {
  std::string_view method;
  std::string_view path;
  std::string_view query;
  // The request asks for a WebSocket: GET and the fields of RFC 6455.
  bool websocket_upgrade = false;
};

}  // namespace policy
