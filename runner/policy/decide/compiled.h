// SPDX-License-Identifier: Apache-2.0
// A policy made ready for decisions: globs compiled, programs indexed. Made once, never changed; a
// decision about a request allocates nothing.
//
//   CompiledPolicy compiled(std::move(policy));                      // Once per policy.
//   CallerMatch match = compiled.MatchCaller(caller);                // Once per process.
//   Route route = compiled.FindRoute(match, host, port);             // Once per connection.
//   if (!route.connection().allowed) ...
//   Verdict verdict = route.Decide({method, path, query});           // Per request.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/decide/decide.h"
#include "policy/decide/verdict.h"
#include "policy/model/policy.h"

namespace policy {

// The method that a rule gives to one text message of a WebSocket (OpenShell).
inline constexpr std::string_view kWebSocketText = "WEBSOCKET_TEXT";

// The end of a reason: no rule allows the request or message, whatever it may say.
inline constexpr std::string_view kNotPermitted = " not permitted by policy";

struct CompiledTables;    // compiled_tables.h
struct CompiledEndpoint;  // Likewise.

// The policies that one caller's programs match. Worth keeping per process: it depends on the
// caller and the compiled policy alone. Copyable; meaningful only with the CompiledPolicy that made
// it.
class CallerMatch {
 private:
  friend class CompiledPolicy;
  std::vector<bool> policies_;  // By index into Policy::network.
};

// One caller's way to one host and port: the verdict on the connection, and what judges its
// requests. Made once per connection. The CompiledPolicy must outlive it.
class Route {
 public:
  Route() = default;  // Denied: no policies.

  const Verdict& connection() const { return connection_; }
  // Has a meaning only if the connection is allowed.
  const Handling& handling() const { return handling_; }
  // Returns the endpoints that judge requests, in the order of the policies' keys.
  std::span<const CompiledEndpoint* const> judging() const { return judging_; }
  const std::string& host() const { return host_; }  // Canonical.
  uint16_t port() const { return port_; }
  // Returns Policy::narrowed_by.
  std::string_view narrowed_by() const { return narrowed_by_; }

  // Covers host and port, but not the caller. Empty if the connection is allowed by others.
  std::span<const NetworkPolicy* const> missed() const { return missed_; }

  // Decides whether this request may pass. A route that only L4 endpoints cover allows every
  // request. Otherwise a rule of an endpoint that selects the path must allow it, and no deny rule
  // of any may fire. Refuses what NeedsBody (graphql_decide.h and rpc_decide.h judge those; they
  // judge no WebSocket's messages, so an upgrade there is refused for good), and plain requests to
  // a WebSocket endpoint, whose rules are for upgrades and messages (websocket_decide.h).
  Verdict Decide(const HttpRequest& request) const;

  // Returns the verdict on a request that is not of the protocol required at `path`: refused, even
  // under audit.
  Verdict RefuseMalformed(Reason reason, std::string_view path, std::string_view detail) const;

  // Returns the endpoint with the narrowest path selector that takes `path`: its protocol,
  // enforcement, signing and rewriting hold. Returns null if there is none.
  const Endpoint* GoverningEndpoint(std::string_view path) const;
  // True if the governing endpoint is for graphql, json-rpc or mcp: the whole body is to be judged.
  bool NeedsBody(std::string_view path) const;

 private:
  friend class CompiledPolicy;

  Verdict connection_;
  Handling handling_;
  std::string host_;
  uint16_t port_ = 0;
  std::string_view narrowed_by_;                  // Of the CompiledPolicy.
  std::vector<const CompiledEndpoint*> judging_;  // Those with request rules, by policy key.
  std::vector<const NetworkPolicy*> missed_;
};

class CompiledPolicy {
 public:
  // Everything that ParsePolicy gives is compiled. A glob that does not parse (ParsePolicy refuses
  // those) matches nothing; in a deny rule, everything.
  explicit CompiledPolicy(Policy policy);
  ~CompiledPolicy();
  CompiledPolicy(CompiledPolicy&&) noexcept;
  CompiledPolicy& operator=(CompiledPolicy&&) noexcept;
  CompiledPolicy(const CompiledPolicy&) = delete;
  CompiledPolicy& operator=(const CompiledPolicy&) = delete;

  const Policy& source() const;

  CallerMatch MatchCaller(const Caller& caller) const;
  // Finds the route to `host`, a DNS name or an address literal without brackets, any case, with or
  // without one trailing dot.
  Route FindRoute(const CallerMatch& caller, std::string_view host, uint16_t port) const;

  // Returns whether any endpoint covers this host, whatever its port and programs. The policy's own
  // name service asks this: other names need no address.
  bool NamesHost(std::string_view host) const;

 private:
  std::unique_ptr<const CompiledTables> tables_;
};

// Renders why, in OpenShell's words. `caller` is named if its program was the reason of a refused
// connection, `request` if a rule over requests was: "GET /x not permitted by policy".
std::string RenderReason(const Verdict& verdict, const Route& route, const Caller& caller,
                         const HttpRequest& request = {});
// Returns the verdict with its texts, as a value that needs no policy any more.
Decision DescribeVerdict(const Verdict& verdict, const Route& route, const Caller& caller,
                         const HttpRequest& request = {});

}  // namespace policy
