// SPDX-License-Identifier: Apache-2.0
#include "policy/decide.h"

#include "policy/compiled.h"

namespace policy {
namespace {

Decision Describe(const Verdict& verdict, std::string reason) {
  Decision decision;
  decision.allowed = verdict.allowed;
  decision.audited = verdict.audited;
  decision.policy = verdict.policy_name();
  decision.reason = std::move(reason);
  decision.at = verdict.at();
  return decision;
}

}  // namespace

Decision DecideConnection(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller) {
  CompiledPolicy compiled(policy);
  Route route = compiled.FindRoute(compiled.MatchCaller(caller), host, port);
  return Describe(route.connection(), RenderReason(route.connection(), route, caller));
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
  Verdict verdict = route.Decide(request);
  return Describe(verdict, RenderReason(verdict, route, caller, request));
}

}  // namespace policy
