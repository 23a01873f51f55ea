// SPDX-License-Identifier: Apache-2.0
// For tests: one question to a policy that is compiled for it.
#pragma once

#include "policy/decide/compiled.h"

namespace policy {

inline Decision DecideConnection(const Policy& policy, std::string_view host, uint16_t port,
                                 const Caller& caller) {
  CompiledPolicy compiled(policy);
  Route route = compiled.FindRoute(compiled.MatchCaller(caller), host, port);
  return DescribeVerdict(route.connection(), route, caller, {});
}

inline Handling DescribeHandling(const Policy& policy, std::string_view host, uint16_t port,
                                 const Caller& caller) {
  CompiledPolicy compiled(policy);
  return compiled.FindRoute(compiled.MatchCaller(caller), host, port).handling();
}

inline Decision DecideRequest(const Policy& policy, std::string_view host, uint16_t port,
                              const Caller& caller, const HttpRequest& request) {
  CompiledPolicy compiled(policy);
  Route route = compiled.FindRoute(compiled.MatchCaller(caller), host, port);
  return DescribeVerdict(route.Decide(request), route, caller, request);
}

}  // namespace policy
