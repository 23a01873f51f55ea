// SPDX-License-Identifier: Apache-2.0
// The gateway's decisions as records: OCSF 1.8.0 JSON (the truth) and OpenShell's one-line
// shorthand (for people). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "policy/decide/operation.h"

namespace gateway {

// One decision. Everything in it may come from outside; the renderers escape and bound it. It never
// holds a credential: paths are redacted before (credentials.h), queries are not kept.
struct Event {
  enum class Kind { kConnection, kRequest };
  // kFailed stands for allowed, but the other side could not be reached or trusted.
  enum class Outcome { kNone, kAllowed, kAudited, kDenied, kFailed };

  Kind kind = Kind::kConnection;
  Outcome outcome = Outcome::kNone;
  std::string binary;  // The program, or empty when it is not known.
  int64_t pid = 0;
  std::vector<std::string> ancestors;
  std::string host;
  uint16_t port = 0;
  std::string transport;  // "tcp", "udp", "icmp" behind the port, or empty: TCP.
  std::string scheme;     // "http" or "https"; requests only.
  std::string method;     // Requests only.
  std::string path;       // Canonical; requests only.
  std::string policy;     // Empty without a policy part; "-" if none matched.
  std::string engine;     // The part that decided: opa, ssrf, l7, tls, credentials, http-parser...
  std::string reason;     // Shown when denied.
  std::string message;
  std::string position;       // "file:line:col" of the rule that decided, or empty.
  bool by_deny_rule = false;  // That is a deny rule.
  // Requests that rules refuse, or would but for audit; in the JSON alone.
  // The protocol of an endpoint that judges more than method and path, as written.
  std::string protocol;
  // The operations that were asked for (policy/decide/operation.h).
  std::vector<policy::Operation> operations;
  std::vector<std::pair<std::string, std::string>> context;  // Further facts about a request.
};

// The reason of a captured connection that was allowed: its message is shown (OpenShell).
inline constexpr char kTransparentAllowed[] = "transparent_tcp_allowed";

// Renders an event: "NET:REFUSE [MED] DENIED /usr/bin/node(7) -> example.com:443 [policy:-
// engine:opa] [reason:...]"
std::string RenderShorthand(const Event& event);
void AppendShorthand(const Event& event, std::string& out);

// Renders one JSON object without a newline. `unmapped` repeats what a denied attempt needs to be
// turned into a policy line: host, port, method, path, protocol, operations, binary, decision.
std::string RenderOcsf(const Event& event, int64_t time_ms);
void AppendOcsf(const Event& event, int64_t time_ms, std::string& out);

// Renders a time: "2026-08-21T10:00:00.123Z" for milliseconds since 1970.
std::string RenderTime(int64_t time_ms);

}  // namespace gateway
