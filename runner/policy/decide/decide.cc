// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/decide.h"

#include "policy/decide/compiled.h"

namespace policy {

Decision DescribeVerdict(const Verdict& verdict, const Route& route, const Caller& caller,
                         const HttpRequest& request) {
  Decision decision;
  decision.allowed = verdict.allowed;
  decision.audited = verdict.audited;
  decision.policy = verdict.policy_name();
  decision.reason = RenderReason(verdict, route, caller, request);
  decision.at = verdict.at();
  decision.by_deny_rule = verdict.by_deny_rule();
  return decision;
}

Decision DecideConnection(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller) {
  CompiledPolicy compiled(policy);
  Route route = compiled.FindRoute(compiled.MatchCaller(caller), host, port);
  return DescribeVerdict(route.connection(), route, caller, {});
}

Handling DescribeHandling(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller) {
  CompiledPolicy compiled(policy);
  return compiled.FindRoute(compiled.MatchCaller(caller), host, port).handling();
}

Decision DecideRequest(const Policy& policy, std::string_view host, uint16_t port,
                       const Caller& caller, const HttpRequest& request) {
  CompiledPolicy compiled(policy);
  Route route = compiled.FindRoute(compiled.MatchCaller(caller), host, port);
  return DescribeVerdict(route.Decide(request), route, caller, request);
}

}  // namespace policy
