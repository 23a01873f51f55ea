// SPDX-License-Identifier: Apache-2.0
// Absolute-form requests ("GET http://host/path"): one per connection, over plain HTTP.
#include "codec/wire/http_target.h"
#include "gateway/connection.h"
#include "gateway/http/http1_client.h"
#include "gateway/http/refusal.h"
#include "gateway/transaction.h"

namespace gateway {
namespace {

// The parts that forwarding one request needs besides the connection; if `refusal` is not empty, it
// is the answer instead.
struct ForwardPlan {
  Authority authority;
  std::string target;  // "METHOD host:port/path" without the query, for texts.
  std::string refusal;
  record::Engine engine = record::Engine::kHttpParser;
  std::string reason;
};

// A plain-text answer, as OpenShell gives for https targets.
std::string RenderUseConnect() {
  std::string body = "use CONNECT for https:// targets\n";
  return codec::RenderResponseHead(400, "Bad Request",
                                   {{"Content-Type", "text/plain"},
                                    {"Content-Length", std::to_string(body.size())},
                                    {"Connection", "close"}}) +
         body;
}

ForwardPlan PlanForward(const codec::RequestHead& head) {
  ForwardPlan plan;
  std::optional<AbsoluteTarget> target = ParseAbsoluteTarget(head.target);
  if (!target.has_value() || head.target.front() == '/') {
    plan.reason = "the request target has no host: this is a proxy";
    plan.refusal = RenderRefusal(NewRefusal(400, "invalid_request_target", plan.reason));
    return plan;
  }
  std::optional<Authority> authority = ParseAuthority(target->authority, 80);
  if (!authority.has_value()) {
    plan.reason = "invalid host or port in the request target";
    plan.refusal = RenderRefusal(NewRefusal(400, "invalid_request_target", plan.reason));
    return plan;
  }
  plan.authority = *authority;
  if (target->scheme == "https") {
    plan.reason = "https target without CONNECT";
    plan.refusal = RenderUseConnect();
  } else if (target->scheme != "http") {
    plan.reason = "unsupported scheme of the request target";
    plan.refusal = RenderRefusal(NewRefusal(400, "unsupported_proxy_scheme", plan.reason));
  }
  std::string_view path = target->path_and_query;
  Result<std::string> canonical = codec::CanonicalPath(path.substr(0, path.find('?')), true);
  plan.target = head.method + " " + RenderAuthority(plan.authority, 0) +
                (canonical.ok() ? RedactPlaceholders(canonical.value()) : "");
  return plan;
}

record::Event RefusalEvent(const caller::Owner& owner, const codec::RequestHead& head,
                           const ForwardPlan& plan) {
  record::Event event = NewConnectionEvent(owner, record::Event::Outcome::kDenied);
  event.kind = plan.authority.host.empty() ? record::Event::Kind::kConnection
                                           : record::Event::Kind::kRequest;
  event.host = plan.authority.host;
  event.port = plan.authority.port;
  event.scheme = "http";
  event.method = head.method;
  size_t path = plan.target.find('/');
  event.path = path == std::string::npos ? "" : plan.target.substr(path);
  event.policy = "-";
  event.engine = plan.engine;
  event.reason = plan.reason;
  event.message = "FORWARD denied " + plan.target;
  return event;
}

Task<void> SendRefusal(Services& services, Stream& client, record::Event event,
                       std::string response) {
  if (!services.Record(event)) co_return;
  Status written = co_await client.Write(response);
  if (written.ok()) co_await client.Linger();
}

}  // namespace

Task<void> ServeForward(Services& services, const caller::Owner& owner, Stream& client,
                        const codec::RequestHead& head) {
  ForwardPlan plan = PlanForward(head);
  record::Event event = RefusalEvent(owner, head, plan);
  if (!plan.refusal.empty()) {
    co_return co_await SendRefusal(services, client, std::move(event), std::move(plan.refusal));
  }
  std::unique_ptr<LivePolicy::Lease> lease = services.policy.Take();
  // When another policy is loaded, this request ends, as a tunnel does.
  lease->WhenReplaced([&client] { client.AbortReading(); });
  if (services.ratchet != nullptr && services.ratchet->Keeps(plan.authority)) {
    lease->KeepWhenNarrowed();
  }
  const policy::CompiledPolicy& compiled = lease->compiled();
  policy::Route route = compiled.FindRoute(compiled.MatchCaller(caller::Judged(owner)),
                                           plan.authority.host, plan.authority.port);
  OwnerDecision decided = DecideOwner(owner, route);
  event.policy = decided.decision.policy;
  event.engine = decided.engine;
  if (!decided.decision.allowed) {
    event.reason = decided.decision.reason;
    std::string response =
        RenderRefusal(NewRefusal(403, "policy_denied", plan.target + " not permitted by policy"));
    co_return co_await SendRefusal(services, client, std::move(event), std::move(response));
  }
  RequestContext context{
      *lease,         route, services.policy_file, services.credentials, owner.caller,
      plan.authority, "http"};
  context.confidential = policy::IsHostAlias(plan.authority.host);
  context.forward = true;
  DestinationVerdict found = co_await FindDestination(services, plan.authority, route.handling());
  if (!found.allowed) {
    bool unresolved = !found.failure.empty();
    event.outcome = unresolved ? record::Event::Outcome::kFailed : record::Event::Outcome::kDenied;
    event.engine = unresolved ? record::Engine::kUpstream : record::Engine::kSsrf;
    event.reason = unresolved ? found.failure : plan.target + " blocked: " + found.label;
    std::string response = RenderRefusal(NewRefusal(
        unresolved ? 502 : 403, unresolved ? "upstream_unreachable" : "ssrf_denied", event.reason));
    co_return co_await SendRefusal(services, client, std::move(event), std::move(response));
  }
  Upstream upstream(services, std::move(found.destination));
  Http1ClientRequest request(client, head);
  Transaction transaction(services, owner, context, upstream, request);
  co_await transaction.Run();
  (void)co_await request.Settle();
}

}  // namespace gateway
