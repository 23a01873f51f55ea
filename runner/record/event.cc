// SPDX-License-Identifier: Apache-2.0
#include "record/event.h"

#include <algorithm>
#include <array>

#include "policy/decide/compiled.h"

namespace record {
namespace {

// In the order of Engine, up to kOther.
constexpr std::array<std::string_view, 19> kEngineNames = {
    "",           "opa",          "l7",           "l7-graphql",
    "l7-jsonrpc", "l7-mcp",       "l7-websocket", "dns",
    "nftables",   "identity",     "http-parser",  "request-authority",
    "ssrf",       "tls",          "credentials",  "middleware",
    "budget",     "hosted-tools", "upstream"};
static_assert(kEngineNames.size() == static_cast<size_t>(Engine::kOther));

template <typename Facts>
auto FindFact(const Facts& facts, std::string_view name) {
  return std::find_if(facts.begin(), facts.end(),
                      [&](const auto& fact) { return fact.first == name; });
}

}  // namespace

std::string_view EngineName(const Event& event) {
  if (event.engine == Engine::kOther) return event.other_engine;
  return kEngineNames[static_cast<size_t>(event.engine)];
}

void SetEngine(std::string_view name, Event* event) {
  const auto found = std::find(kEngineNames.begin(), kEngineNames.end(), name);
  event->engine = static_cast<Engine>(found - kEngineNames.begin());
  if (event->engine == Engine::kOther) event->other_engine = name;
}

bool IsByPolicy(const Event& event) {
  switch (event.engine) {
    case Engine::kNone:
    case Engine::kOpa:
    case Engine::kL7:
    case Engine::kDns:  // A name is refused because no endpoint is about it.
      return true;
    case Engine::kL7WebSocket:
      // A message that is judged as text; others are judged by what they ask for.
      if (event.method == policy::kWebSocketText && event.reason.ends_with(policy::kNotPermitted)) {
        return true;
      }
      [[fallthrough]];
    case Engine::kL7Graphql:
    case Engine::kL7JsonRpc:
    case Engine::kL7Mcp:
    case Engine::kHostedTools:
      return !event.operations.empty();
    default:
      return false;
  }
}

bool IsSpent(const Event& event) {
  return event.engine == Engine::kBudget && event.reason.starts_with(kBudgetSpent);
}

Notice Notice::Seen(std::string type, std::string title, Severity severity) {
  Notice notice;
  notice.severity = severity;
  notice.activity = "CREATE";
  notice.title = std::move(title);
  notice.type = std::move(type);
  return notice;
}

Notice Notice::Blocked(std::string type, std::string title) {
  Notice notice = Seen(std::move(type), std::move(title), Severity::kHigh);
  notice.activity = "BLOCKED";
  notice.succeeded = false;
  return notice;
}

std::string_view Notice::ContextAt(std::string_view name) const {
  const auto found = FindFact(context, name);
  return found == context.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<int64_t> Notice::CountAt(std::string_view name) const {
  const auto found = FindFact(counts, name);
  if (found == counts.end()) return std::nullopt;
  return found->second;
}

}  // namespace record
