// SPDX-License-Identifier: Apache-2.0
#include "gateway/connection.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <optional>

#include "gateway/http/head_reader.h"
#include "gateway/http/refusal.h"

namespace gateway {
namespace {

Task<void> RefuseHead(Services& services, const caller::Owner& owner, Stream& client,
                      std::string why, std::string response) {
  record::Event event = NewConnectionEvent(owner, record::Event::Outcome::kDenied);
  event.policy = "-";
  event.engine = record::Engine::kHttpParser;
  event.reason = std::move(why);
  if (!services.Record(event)) co_return;
  if (!response.empty()) {
    Status written = co_await client.Write(response);
    if (!written.ok()) co_return;
  }
  co_await client.Linger();
}

Task<void> ServeFirstHead(Services& services, const caller::Owner& owner, Stream& client) {
  HeadText text = co_await ReadProxyHead(client);
  if (text.kind == HeadText::kEnd || text.kind == HeadText::kFailed) co_return;
  if (text.kind == HeadText::kTooLong) {
    co_return co_await RefuseHead(services, owner, client, text.why, RenderBareRefusal(431));
  }
  Result<codec::RequestHead> head =
      text.kind == HeadText::kHead ? codec::ParseRequestHead(text.text)
                                   : Result<codec::RequestHead>(Error{Code::kInvalid, text.why});
  if (!head.ok()) {
    std::string why = head.error().what;
    co_return co_await RefuseHead(services, owner, client, why, RenderBareRefusal(400));
  }
  if (head.value().method == "CONNECT") {
    co_return co_await ServeTunnel(services, owner, client, head.value());
  }
  co_return co_await ServeForward(services, owner, client, head.value());
}

}  // namespace

std::optional<caller::Endpoint> EndOf(int socket, int (*call)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (call(socket, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return std::nullopt;
  caller::Endpoint endpoint;
  if (bytes.ss_family == AF_INET) {
    sockaddr_in v4;
    ::memcpy(&v4, &bytes, sizeof v4);
    endpoint.address[10] = endpoint.address[11] = 0xff;
    ::memcpy(&endpoint.address[12], &v4.sin_addr, 4);
    endpoint.port = ntohs(v4.sin_port);
    return endpoint;
  }
  if (bytes.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  ::memcpy(&v6, &bytes, sizeof v6);
  ::memcpy(endpoint.address.data(), &v6.sin6_addr, 16);
  endpoint.port = ntohs(v6.sin6_port);
  return endpoint;
}

OwnerDecision DecideOwner(const caller::Owner& owner, const policy::Route& route) {
  OwnerDecision decided;
  decided.decision = policy::DescribeVerdict(route.connection(), route, owner.caller);
  decided.engine = record::Engine::kOpa;
  if (owner.refusal.empty() || decided.decision.allowed) return decided;
  // No policy covers the place: a line for the agent helps, whatever its programs are.
  policy::Reason why = route.connection().reason;
  bool uncovered = why == policy::Reason::kNoEndpoint || why == policy::Reason::kNoPolicies;
  if (owner.caller.agent && uncovered) {
    decided.decision.reason += "; " + owner.refusal;
    return decided;
  }
  decided.decision = {};
  decided.decision.policy = "-";
  decided.decision.reason = owner.refusal;
  decided.engine = record::Engine::kIdentity;
  return decided;
}

record::Event NewConnectionEvent(const caller::Owner& owner, record::Event::Outcome outcome) {
  record::Event event;
  event.outcome = outcome;
  event.binary = owner.caller.binary;
  event.pid = owner.pid;
  event.ancestors = owner.caller.ancestors;
  event.reason = owner.refusal;  // Also of what is allowed because it is the agent's.
  return event;
}

Task<void> ServeConnection(Services& services, Fd socket) {
  std::optional<caller::Endpoint> local = EndOf(socket.get(), ::getpeername);
  std::optional<caller::Endpoint> remote = EndOf(socket.get(), ::getsockname);
  Stream client(services.loop, std::move(socket));
  if (!local.has_value() || !remote.has_value()) co_return;  // Gone already.
  caller::Owner owner = co_await services.identities.Ask(*local, *remote);
  if (owner.stranger) co_return client.ResetOnClose();
  co_await ServeFirstHead(services, owner, client);
}

}  // namespace gateway
