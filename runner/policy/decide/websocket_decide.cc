// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/websocket_decide.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "codec/call/graphql.h"
#include "codec/call/json_body.h"
#include "codec/data/json.h"
#include "policy/decide/graphql_decide.h"
#include "policy/decide/judge.h"

namespace policy {
namespace {

using codec::Json;

// Both protocols' messages of a client that run nothing.
constexpr std::string_view kControlTypes[] = {"connection_init", "ping", "pong",
                                              "complete",        "stop", "connection_terminate"};

constexpr std::string_view kMessageMembers[] = {"type", "id", "payload"};

// Returns whether it holds for the path as some server reads it (judge.h).
template <typename Holds>
bool AnyReading(std::string_view path, const Holds& holds) {
  if (holds(path)) return true;
  for (bool encoded_slash : {false, true}) {
    std::optional<std::string> read = SlashReading(path, encoded_slash);
    if (read.has_value() && holds(*read)) return true;
  }
  return false;
}

bool CarriesGraphqlAt(const Route& route, std::string_view path) {
  return std::any_of(
      route.judging().begin(), route.judging().end(), [&](const CompiledEndpoint* endpoint) {
        bool rules = !endpoint->graphql_allow.empty() || !endpoint->graphql_deny.empty();
        return endpoint->protocol() == Protocol::kWebSocket && rules &&
               endpoint->selector.Matches(path);
      });
}

bool CarriesGraphql(const Route& route, std::string_view path) {
  return AnyReading(path, [&](std::string_view read) { return CarriesGraphqlAt(route, read); });
}

HttpRequest MessageOf(const HttpRequest& upgrade) {
  HttpRequest message = upgrade;
  message.method = kWebSocketText;
  message.websocket_upgrade = true;
  return message;
}

// The operation of a message; without a value, one that runs nothing.
Result<std::optional<codec::GraphqlOperation>> ReadMessage(std::string_view text) {
  Json message = TRY(codec::ParseJson(text));
  if (message.object() == nullptr) return Error{Code::kInvalid, "not a JSON object"};
  TRY(codec::CheckMemberNames(message, kMessageMembers));
  std::string type = message.StringAt("type");
  if (std::find(std::begin(kControlTypes), std::end(kControlTypes), type) !=
      std::end(kControlTypes)) {
    return std::optional<codec::GraphqlOperation>();
  }
  const Json* payload = message.Find("payload");
  if ((type != "subscribe" && type != "start") || payload == nullptr) {
    return Error{Code::kInvalid, "not a message of GraphQL over WebSocket"};
  }
  codec::GraphqlOperation operation = TRY(codec::ParseGraphqlEnvelope(*payload));
  return std::optional<codec::GraphqlOperation>(std::move(operation));
}

}  // namespace

bool JudgesMessages(const Route& route, std::string_view path) {
  return AnyReading(path, [&](std::string_view read) {
    const Endpoint* governing = route.GoverningEndpoint(read);
    return governing != nullptr && governing->protocol == Protocol::kWebSocket;
  });
}

JudgedBody DecideMessage(const Route& route, const HttpRequest& upgrade, std::string_view text) {
  const HttpRequest message = MessageOf(upgrade);
  JudgedBody decision;
  if (!CarriesGraphql(route, upgrade.path)) {
    decision.verdict = route.Decide(message);
    return decision;
  }
  Result<std::optional<codec::GraphqlOperation>> read = ReadMessage(text);
  if (!read.ok()) {
    decision.verdict =
        route.RefuseMalformed(Reason::kGraphqlMalformed, upgrade.path, read.error().what);
  } else if (read.value().has_value()) {
    decision.operations.push_back(std::move(*read.value()));
    decision.verdict = DecideGraphql(route, message, decision.operations);
  } else {
    decision.verdict = route.connection();
    decision.verdict.governing = route.GoverningEndpoint(upgrade.path);
  }
  return decision;
}

Verdict DecideBinaryMessage(const Route& route, const HttpRequest& upgrade) {
  if (!CarriesGraphql(route, upgrade.path)) return route.Decide(MessageOf(upgrade));
  return route.RefuseMalformed(Reason::kGraphqlMalformed, upgrade.path,
                               "a binary message is not read");
}

}  // namespace policy
