// SPDX-License-Identifier: Apache-2.0
// What is recorded of a run: the decisions about its connections and requests (Event), and all else
// (Notice). ocsf.h has their form for programs, shorthand.h that for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/decide/operation.h"

namespace record {

// The part that decided. kOther is a part of another program, with a name of its own.
enum class Engine : uint8_t {
  kNone,
  kOpa,  // The policy, about connections; the name is OpenShell's.
  kL7,   // The policy, about requests; the next four by what their bodies say.
  kL7Graphql,
  kL7JsonRpc,
  kL7Mcp,
  kL7WebSocket,
  kDns,
  kNftables,
  kIdentity,
  kHttpParser,
  kRequestAuthority,
  kSsrf,
  kTls,
  kCredentials,
  kMiddleware,
  kBudget,
  kHostedTools,  // The policy, about what a model's provider would do.
  kUpstream,
  kOther,
};

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
  Engine engine = Engine::kNone;
  std::string other_engine;  // The name of kOther.
  std::string reason;        // Shown when denied.
  std::string message;
  std::string position;       // "file:line:col" of the rule that decided, or empty.
  bool by_deny_rule = false;  // That is a deny rule.
  // Requests that rules refuse, or would but for audit, and those that use tools of a model's
  // provider; in the JSON alone.
  // The protocol of an endpoint that judges more than method and path, as written, or
  // policy::kHostedProtocol.
  std::string protocol;
  // The operations that were asked for (policy/decide/operation.h).
  std::vector<policy::Operation> operations;
  std::vector<std::pair<std::string, std::string>> context;  // Further facts about a request.
  int64_t count = 0;  // How often a whole run saw it; 0 for a record of one decision.
};

// Returns the engine's name: "opa", "l7-graphql".
std::string_view EngineName(const Event& event);
void SetEngine(std::string_view name, Event* event);

// Returns whether the policy decided. No line of a policy allows what it did not decide (a
// malformed request, a forbidden address, a secret on its way to the wrong host).
bool IsByPolicy(const Event& event);

// Returns whether the run's own budget was used up, which is the run's end: the request is neither
// one that a policy lacks nor one that leaks.
bool IsSpent(const Event& event);
inline constexpr std::string_view kBudgetSpent = "the run's budget is used up: ";

// The reason of a captured connection that was allowed: its message is shown (OpenShell).
inline constexpr char kTransparentAllowed[] = "transparent_tcp_allowed";

// The type of the finding that a run was narrowed (`after_untrusted`).
inline constexpr std::string_view kNarrowedType = "untrusted.closed";

// A record that is not about a connection: the use of a model, a warning, a change of policy.
struct Notice {
  // API Activity (6003), Detection Finding (2004), Device Config State Change (5019), Application
  // Lifecycle (6002).
  enum class Kind { kInference, kFinding, kConfig, kLifecycle };
  enum class Severity { kInfo = 1, kLow = 2, kMedium = 3, kHigh = 4 };

  Kind kind = Kind::kFinding;
  Severity severity = Severity::kInfo;
  bool succeeded = true;
  // For kFinding "BLOCKED" or "CREATE", for kConfig the new state, "LOADED", for kLifecycle
  // "START".
  std::string activity;
  std::string title;  // For kFinding, kConfig and kLifecycle, one line on what happened.
  std::string type;   // kFinding: its kind, for machines: "budget.tokens".

  // The members for kInference.
  std::string model;
  std::string provider;  // "https://host/v1": without the operation.
  std::string method;
  std::string path;
  int64_t duration_ms = 0;

  // Further facts: text, and counts that must stay numbers.
  std::vector<std::pair<std::string, std::string>> context;
  std::vector<std::pair<std::string, int64_t>> counts;

  // Makes a finding: of something that was refused, or of something that was seen.
  static Notice Blocked(std::string type, std::string title);
  static Notice Seen(std::string type, std::string title, Severity severity = Severity::kInfo);

  // Returns a fact by its name; the empty text, or nullopt, if it is not there.
  std::string_view ContextAt(std::string_view name) const;
  std::optional<int64_t> CountAt(std::string_view name) const;
};

}  // namespace record
