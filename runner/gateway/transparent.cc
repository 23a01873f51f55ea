// SPDX-License-Identifier: Apache-2.0
#include "gateway/transparent.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gateway/connection.h"
#include "gateway/names/limits.h"
#include "gateway/policy_dns.h"
#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

bool CoversPort(const policy::Policy& policy, std::string_view host, uint16_t port) {
  for (const policy::NetworkPolicy& entry : policy.network) {
    for (const policy::Endpoint& endpoint : entry.endpoints) {
      bool named = endpoint.host.empty() || policy::HostMatches(endpoint.host, host);
      bool there =
          std::find(endpoint.ports.begin(), endpoint.ports.end(), port) != endpoint.ports.end();
      if (named && there) return true;
    }
  }
  return false;
}

// The destination of a captured connection, by name where there is one; or why it has none.
struct CapturedTarget {
  Authority authority;
  std::string refusal;
  record::Engine engine = record::Engine::kNftables;  // kOpa if a policy could allow it.
};

CapturedTarget FindCapturedTarget(Services& services, const caller::Endpoint& end) {
  policy::Address address{end.address};
  CapturedTarget target;
  target.authority = {policy::RenderAddress(address), end.port};
  if (policy::IsLoopback(address)) {
    // Loopback is not captured: the client asked for the listener itself.
    target.refusal = "transparent_tcp_direct: the listener is not a destination";
  } else if (SyntheticPool::Contains(address)) {
    std::optional<std::string> host = services.names.Find(address);
    if (!host.has_value()) {
      target.refusal = "transparent_tcp_unmapped: no name has this address";
      return target;
    }
    target.authority.host = std::move(*host);
    if (!CoversPort(services.policy.source(), target.authority.host, end.port)) {
      target.engine = record::Engine::kOpa;
      target.refusal = "transparent_tcp_port_mismatch: no endpoint for " + target.authority.host +
                       " has port " + std::to_string(end.port);
    }
  }
  return target;
}

bool RecordRefusal(Services& services, const caller::Owner& owner, const CapturedTarget& target,
                   std::string_view transport) {
  record::Event event = NewConnectionEvent(owner, record::Event::Outcome::kDenied);
  event.host = target.authority.host;
  event.port = target.authority.port;
  event.transport = transport;
  event.policy = "-";
  event.engine = target.engine;
  event.reason = target.refusal;
  event.message = "TCP denied " + RenderAuthority(target.authority, 0);
  return services.Record(event);
}

}  // namespace

Task<void> ServeCaptured(Services& services, Fd socket) {
  std::optional<caller::Endpoint> local = EndOf(socket.get(), ::getpeername);
  std::optional<caller::Endpoint> remote = EndOf(socket.get(), ::getsockname);
  Stream client(services.loop, std::move(socket));
  if (!local.has_value() || !remote.has_value()) co_return;  // Gone already.
  caller::Owner owner = co_await services.identities.Ask(*local, *remote);
  if (owner.stranger) co_return client.ResetOnClose();
  // The supervisor says it where the kernel could not.
  if (owner.destination.port != 0) remote = owner.destination;
  // Every address has our name server at that port, over TCP as over UDP.
  if (remote->port == kDnsPort) {
    co_await ServeNameStream(services, owner, client);
    co_return;
  }
  CapturedTarget target = FindCapturedTarget(services, *remote);
  if (!target.refusal.empty()) {
    if (RecordRefusal(services, owner, target, "tcp")) client.ResetOnClose();
    co_return;
  }
  co_await ServeCapturedTunnel(services, owner, client, std::move(target.authority));
}

bool MayServeCaptured(const policy::Policy& policy, const caller::Endpoint& remote) {
  policy::Address address{remote.address};
  return remote.port == kDnsPort || SyntheticPool::Contains(address) ||
         CoversPort(policy, policy::RenderAddress(address), remote.port);
}

void RecordRefusedConnect(Services& services, const caller::Owner& owner,
                          const caller::Endpoint& remote) {
  Authority authority{policy::RenderAddress(policy::Address{remote.address}), remote.port};
  const policy::CompiledPolicy& policy = services.policy.compiled();
  policy::CallerMatch match = policy.MatchCaller(caller::Judged(owner));
  OwnerDecision decided =
      DecideOwner(owner, policy.FindRoute(match, authority.host, authority.port));
  CapturedTarget target{authority, std::move(decided.decision.reason), decided.engine};
  // The shorthand names the transport of what arrived here; this connection did not. A record that
  // fails ends the gateway, and the run with it.
  (void)RecordRefusal(services, owner, target, "");
}

}  // namespace gateway
