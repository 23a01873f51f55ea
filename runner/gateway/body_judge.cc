// SPDX-License-Identifier: Apache-2.0
#include "gateway/body_judge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/graphql.h"
#include "codec/http_target.h"
#include "codec/json_body.h"
#include "codec/json_rpc.h"
#include "gateway/limits.h"
#include "gateway/refusal.h"
#include "policy/graphql_decide.h"
#include "policy/rpc_decide.h"

namespace gateway {
namespace {

using policy::Protocol;
using policy::Reason;
using policy::Verdict;

// What the body asks for, as one line of a record.
struct Summary {
  std::string methods;  // json-rpc and mcp.
  std::string tools;
  std::string operations;  // graphql.
};

policy::HttpRequest RequestOf(const BodyQuestion& question) {
  return {question.method, question.path, question.query};
}

Protocol ProtocolOf(const BodyQuestion& question) {
  const policy::Endpoint* governing = question.route.GoverningEndpoint(question.path);
  return governing == nullptr ? Protocol::kL4 : governing->protocol;
}

std::string_view EngineOf(Protocol protocol) {
  if (protocol == Protocol::kGraphql) return "l7-graphql";
  return protocol == Protocol::kMcp ? "l7-mcp" : "l7-jsonrpc";
}

std::string_view NameOf(Protocol protocol) {
  if (protocol == Protocol::kGraphql) return "graphql";
  return protocol == Protocol::kMcp ? "mcp" : "json-rpc";
}

// A list that an agent chose, cut to what a record can hold.
void AddName(std::string_view name, std::string* list) {
  if (list->size() >= kReasonBytesMax) return;
  if (!list->empty()) *list += ",";
  *list += name.empty() ? std::string_view("-") : name.substr(0, kReasonBytesMax);
}

std::string_view OrDash(const std::string& text) { return text.empty() ? "-" : text; }

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

Refusal RenderAnswer(const BodyQuestion& question, Protocol protocol, const Verdict& verdict,
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
  RequestDenial denial;
  denial.policy = verdict.policy_name();
  denial.reason = reason;
  denial.method = question.method;
  denial.path = question.shown_path;
  denial.host = question.route.host();
  denial.port = question.route.port();
  denial.binary = question.caller.binary;
  denial.protocol = NameOf(protocol);
  return NewRequestDenial(denial);
}

BodyVerdict Conclude(const BodyQuestion& question, Verdict verdict, const Summary& summary) {
  Protocol protocol = ProtocolOf(question);
  policy::HttpRequest shown = RequestOf(question);
  shown.path = question.shown_path;
  BodyVerdict judged;
  judged.engine = EngineOf(protocol);
  judged.reason = policy::RenderReason(verdict, question.route, question.caller, shown);
  judged.verdict = std::move(verdict);
  judged.message = RenderMessage(question, protocol, summary, judged);
  if (judged.verdict.allowed) return judged;
  judged.refusal = OutgoingRefusal{RenderAnswer(question, protocol, judged.verdict, judged.reason),
                                   judged.engine, judged.reason};
  return judged;
}

BodyVerdict Malformed(const BodyQuestion& question, std::string_view why) {
  Reason reason = ProtocolOf(question) == Protocol::kGraphql ? Reason::kGraphqlMalformed
                                                             : Reason::kRpcMalformed;
  return Conclude(question, question.route.RefuseMalformed(reason, question.path, why), {});
}

BodyVerdict JudgeGraphql(const BodyQuestion& question, std::string_view body) {
  Result<codec::QueryParameters> query = codec::ParseQuery(question.query);
  if (!query.ok()) return Malformed(question, query.error().what);
  Result<std::vector<codec::GraphqlOperation>> operations =
      codec::ParseGraphqlRequest(question.method, question.fields, query.value(), body);
  if (!operations.ok()) return Malformed(question, operations.error().what);
  Summary summary;
  for (const codec::GraphqlOperation& operation : operations.value()) {
    std::string type = operation.type.empty() ? "persisted" : operation.type;
    AddName(operation.name.empty() ? type : type + ":" + operation.name, &summary.operations);
  }
  return Conclude(question,
                  policy::DecideGraphql(question.route, RequestOf(question), operations.value()),
                  summary);
}

BodyVerdict JudgeCalls(const BodyQuestion& question, Protocol protocol, std::string_view body) {
  const policy::Endpoint* governing = question.route.GoverningEndpoint(question.path);
  bool strict = governing != nullptr && governing->mcp.strict_tool_names;
  Result<codec::JsonRpcRequest> request =
      protocol == Protocol::kMcp ? codec::ParseMcp(body, strict) : codec::ParseJsonRpc(body);
  if (!request.ok()) return Malformed(question, request.error().what);
  Summary summary;
  for (const codec::JsonRpcCall& call : request.value().calls) {
    AddName(call.method, &summary.methods);
    if (!call.tool.empty()) AddName(call.tool, &summary.tools);
  }
  if (request.value().calls.empty()) summary.methods = "response";
  return Conclude(question, policy::DecideRpc(question.route, RequestOf(question), request.value()),
                  summary);
}

bool AcceptsEvents(std::string_view accept) {
  while (!accept.empty()) {
    size_t end = std::min(accept.find(','), accept.size());
    std::string_view type = accept.substr(0, std::min(end, accept.find(';')));
    accept.remove_prefix(std::min(end + 1, accept.size()));
    while (type.starts_with(' ') || type.starts_with('\t')) type.remove_prefix(1);
    while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
    if (codec::EqualIgnoringCase(type, "text/event-stream")) return true;
  }
  return false;
}

// How mcp's clients receive what servers send.
bool IsReceiveStream(const BodyQuestion& question) {
  bool empty =
      question.framing.kind == codec::BodyFraming::kNone ||
      (question.framing.kind == codec::BodyFraming::kLength && question.framing.length == 0);
  if (!codec::EqualIgnoringCase(question.method, "GET") || !empty) return false;
  return std::any_of(
      question.fields.begin(), question.fields.end(), [](const codec::HttpField& field) {
        return codec::EqualIgnoringCase(field.name, "accept") && AcceptsEvents(field.value);
      });
}

}  // namespace

std::optional<BodyNeeds> FindBodyNeeds(const BodyQuestion& question) {
  if (!question.route.NeedsBody(question.path)) return std::nullopt;
  const policy::Endpoint* governing = question.route.GoverningEndpoint(question.path);
  BodyNeeds needs;
  Status readable = codec::CheckJsonBodyFields(question.fields);
  if (!readable.ok()) {
    needs.verdict = Malformed(question, readable.error().what);
  } else if (governing->protocol != Protocol::kGraphql && IsReceiveStream(question)) {
    needs.verdict =
        Conclude(question, policy::DecideReceiveStream(question.route, RequestOf(question)),
                 {"receive_stream", "", ""});
  } else if (question.framing.kind == codec::BodyFraming::kLength &&
             question.framing.length > governing->body_bytes_max) {
    needs.verdict = JudgeTooLong(question);
  } else {
    needs.bytes_max = governing->body_bytes_max;
  }
  return needs;
}

BodyVerdict JudgeBody(const BodyQuestion& question, std::string_view body) {
  Protocol protocol = ProtocolOf(question);
  if (protocol == Protocol::kGraphql) return JudgeGraphql(question, body);
  return JudgeCalls(question, protocol, body);
}

BodyVerdict JudgeTooLong(const BodyQuestion& question) {
  const policy::Endpoint* governing = question.route.GoverningEndpoint(question.path);
  size_t bytes_max = governing == nullptr ? 0 : governing->body_bytes_max;
  return Malformed(question, "a body longer than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace gateway
