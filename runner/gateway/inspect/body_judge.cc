// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/body_judge.h"

#include <utility>

#include "gateway/http/refusal.h"
#include "record/limits.h"

namespace gateway {
namespace {

using policy::Protocol;
using policy::Reason;
using policy::Verdict;

// The requests in a body, as one line of a record.
struct Summary {
  std::string methods;  // json-rpc and mcp.
  std::string tools;
  std::string operations;  // graphql.
};

policy::HttpRequest RequestOf(const BodyQuestion& question) {
  return {question.method, question.path, question.query, question.websocket_upgrade};
}

Protocol ProtocolOf(const BodyQuestion& question) {
  const policy::Endpoint* governing = question.route.GoverningEndpoint(question.path);
  return governing == nullptr ? Protocol::kL4 : governing->protocol;
}

record::Engine EngineOf(Protocol protocol) {
  if (protocol == Protocol::kGraphql) return record::Engine::kL7Graphql;
  return protocol == Protocol::kMcp ? record::Engine::kL7Mcp : record::Engine::kL7JsonRpc;
}

// The protocol of the endpoint that judged, or would have to.
std::string_view NameOf(Protocol protocol, const Verdict& verdict) {
  if (verdict.reason == Reason::kUpgradeNotJudged) return "websocket";
  if (protocol == Protocol::kGraphql) return "graphql";
  return protocol == Protocol::kMcp ? "mcp" : "json-rpc";
}

// A list that an agent chose, cut to what a record can hold.
void AddName(std::string_view name, std::string* list) {
  if (list->size() >= record::kReasonBytesMax) return;
  if (!list->empty()) *list += ",";
  *list += name.empty() ? std::string_view("-") : name.substr(0, record::kReasonBytesMax);
}

std::string_view OrDash(std::string_view text) { return text.empty() ? "-" : text; }

std::string RenderMessage(const BodyQuestion& question, Protocol protocol, const Summary& summary,
                          const BodyVerdict& judged) {
  std::string decision = "deny";
  if (judged.verdict.allowed) decision = judged.verdict.audited ? "audit" : "allow";
  std::string place = question.route.host() + ":" + std::to_string(question.route.port()) +
                      std::string(question.shown_path);
  std::string method(question.method);
  if (protocol == Protocol::kGraphql) {
    return "GRAPHQL_L7_REQUEST " + decision + " " + method + " " + place +
           " operations=" + std::string(OrDash(summary.operations)) + " reason=" + judged.reason;
  }
  return "JSONRPC_L7_REQUEST decision=" + decision +
         " rule_methods=" + std::string(OrDash(summary.methods)) +
         " tools=" + std::string(OrDash(summary.tools)) + " http_method=" + method +
         " endpoint=" + place + " policy_version=" + std::to_string(question.policy_version) +
         " reason=" + judged.reason;
}

Refusal NewBodyRefusal(const BodyQuestion& question, Protocol protocol, const Verdict& verdict,
                       const std::string& reason) {
  bool malformed =
      verdict.reason == Reason::kGraphqlMalformed || verdict.reason == Reason::kRpcMalformed;
  if (question.forward && malformed) {
    bool graphql = protocol == Protocol::kGraphql;
    return NewRefusal(400, graphql ? "invalid_graphql_request" : "invalid_jsonrpc_request", reason);
  }
  if (question.forward) {
    std::string place = question.route.host() + ":" + std::to_string(question.route.port()) +
                        std::string(question.shown_path);
    return NewRefusal(
        403, "policy_denied",
        std::string(question.method) + " " + place + " denied by L7 policy: " + reason);
  }
  RefusedRequest refused;
  refused.policy = verdict.policy_name();
  refused.reason = reason;
  refused.method = question.method;
  refused.path = question.shown_path;
  refused.host = question.route.host();
  refused.port = question.route.port();
  refused.binary = question.caller.binary;
  refused.protocol = NameOf(protocol, verdict);
  return NewRequestRefusal(refused);
}

BodyVerdict Conclude(const BodyQuestion& question, Verdict verdict, const Summary& summary) {
  Protocol protocol = ProtocolOf(question);
  policy::HttpRequest shown = RequestOf(question);
  shown.path = question.shown_path;
  BodyVerdict judged;
  judged.engine = EngineOf(protocol);
  judged.protocol = NameOf(protocol, verdict);
  judged.reason = policy::RenderReason(verdict, question.route, question.caller, shown);
  judged.verdict = std::move(verdict);
  judged.message = RenderMessage(question, protocol, summary, judged);
  if (judged.verdict.allowed) return judged;
  judged.refusal =
      OutgoingRefusal{NewBodyRefusal(question, protocol, judged.verdict, judged.reason),
                      judged.engine, judged.reason};
  return judged;
}

policy::BodyRequest AskedOf(const BodyQuestion& question) {
  return {RequestOf(question), question.fields, question.framing};
}

Summary Summarize(const policy::JudgedBody& decision) {
  Summary summary;
  for (const codec::GraphqlOperation& operation : decision.operations) {
    std::string type = operation.type.empty() ? "persisted" : operation.type;
    AddName(operation.name.empty() ? type : type + ":" + operation.name, &summary.operations);
  }
  for (const codec::JsonRpcCall& call : decision.calls) {
    AddName(call.method, &summary.methods);
    if (!call.tool.empty()) AddName(call.tool, &summary.tools);
  }
  return summary;
}

}  // namespace

std::optional<BodyNeeds> FindBodyNeeds(const BodyQuestion& question) {
  if (!question.route.NeedsBody(question.path)) return std::nullopt;
  BodyNeeds needs;
  std::optional<Verdict> verdict = policy::DecideBodyHead(question.route, AskedOf(question));
  if (verdict) {
    needs.verdict = Conclude(question, std::move(*verdict), {});
  } else {
    needs.bytes_max = question.route.GoverningEndpoint(question.path)->body_bytes_max;
  }
  return needs;
}

BodyVerdict JudgeBody(const BodyQuestion& question, std::string_view body) {
  policy::JudgedBody decision = policy::DecideBody(question.route, AskedOf(question), body);
  Summary summary = Summarize(decision);
  std::vector<policy::Operation> refused = policy::RefusedOperations(decision);
  BodyVerdict judged = Conclude(question, std::move(decision.verdict), summary);
  judged.operations = std::move(refused);
  if (judged.refusal.has_value() && !decision.mcp_answer.empty()) {
    judged.refusal->answer = {
        400, {{"Content-Type", "application/json"}}, std::move(decision.mcp_answer)};
  }
  return judged;
}

BodyVerdict JudgeTooLong(const BodyQuestion& question) {
  return Conclude(question, policy::DecideTooLong(question.route, question.path), {});
}

}  // namespace gateway
