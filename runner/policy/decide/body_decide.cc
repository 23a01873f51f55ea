// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/body_decide.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codec/call/json_body.h"
#include "codec/call/mcp_fields.h"
#include "codec/text/neutral.h"
#include "codec/wire/http_target.h"
#include "policy/decide/graphql_decide.h"
#include "policy/decide/rpc_decide.h"

namespace policy {
namespace {

Verdict Malformed(const Route& route, std::string_view path, std::string_view why) {
  const Endpoint* governing = route.GoverningEndpoint(path);
  bool graphql = governing != nullptr && governing->protocol == Protocol::kGraphql;
  return route.RefuseMalformed(graphql ? Reason::kGraphqlMalformed : Reason::kRpcMalformed, path,
                               why);
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

// Returns whether the request is the one by which mcp's clients receive what servers send.
bool IsReceiveStream(const BodyRequest& asked) {
  bool empty = asked.framing.kind == codec::BodyFraming::kNone ||
               (asked.framing.kind == codec::BodyFraming::kLength && asked.framing.length == 0);
  if (!empty || !codec::EqualIgnoringCase(asked.request.method, "GET")) return false;
  return std::any_of(asked.fields.begin(), asked.fields.end(), [](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, "accept") && AcceptsEvents(field.value);
  });
}

JudgedBody DecideOperations(const Route& route, const BodyRequest& asked, std::string_view body) {
  JudgedBody decision;
  Result<codec::QueryParameters> query = codec::ParseQuery(asked.request.query);
  if (!query.ok()) {
    decision.verdict = Malformed(route, asked.request.path, query.error().what);
    return decision;
  }
  if (asked.request.query.find(';') != std::string_view::npos) {
    decision.verdict = Malformed(route, asked.request.path,
                                 "a ';' in the query: to some servers it ends a parameter");
    return decision;
  }
  Result<std::vector<codec::GraphqlOperation>> operations =
      codec::ParseGraphqlRequest(asked.request.method, asked.fields, query.value(), body);
  if (!operations.ok()) {
    decision.verdict = Malformed(route, asked.request.path, operations.error().what);
    return decision;
  }
  decision.operations = std::move(operations).value();
  decision.verdict = DecideGraphql(route, asked.request, decision.operations);
  return decision;
}

// Returns the answer to a request whose header and body disagree, or whose revision of MCP is not
// known here, and sets `why`; empty if there is nothing wrong.
std::string RefuseMcp(const codec::HttpFields& fields, const codec::Json& body, std::string* why) {
  Status agree = codec::CompareMcpFields(fields, body);
  if (!agree.ok()) {
    *why = "the header and the body disagree: " + agree.error().what;
    return codec::RenderMcpError(body, codec::kMcpHeaderMismatch, "HeaderMismatch: " + *why);
  }
  const std::string version = codec::McpVersionOf(body);
  if (version.empty() || version == codec::kMcpMirrored) return {};
  *why = "a revision of MCP that is not known: " + codec::NeutralLine(version);
  return codec::RenderMcpError(body, codec::kMcpUnsupportedVersion, *why,
                               codec::McpVersions(true, version));
}

// Returns the answer to a refused `server/discover` where the rules allow clients of older
// revisions to begin: clients that speak both fall back. Empty for any other request.
std::string OfferInitialize(const Route& route, const BodyRequest& asked,
                            const codec::JsonRpcRequest& request, const codec::Json& body) {
  if (request.calls.size() != 1 || request.calls.front().method != codec::kServerDiscover) {
    return {};
  }
  codec::JsonRpcRequest older;
  older.calls.push_back({std::string(codec::kMcpInitialize), {}});
  if (!DecideRpc(route, asked.request, older).allowed) return {};
  return codec::RenderMcpError(
      body, codec::kMcpUnsupportedVersion,
      "the policy does not allow server/discover, by which clients of MCP 2026-07-28 begin; "
      "it would with the rule {allow: {method: server/discover}}",
      codec::McpVersions(false, codec::McpVersionOf(body)));
}

JudgedBody DecideCalls(const Route& route, const Endpoint& governing, const BodyRequest& asked,
                       std::string_view body) {
  JudgedBody decision;
  const bool mcp = governing.protocol == Protocol::kMcp;
  Result<codec::Json> json = codec::ParseJson(body);
  if (!json.ok()) {
    decision.verdict = Malformed(route, asked.request.path, json.error().what);
    return decision;
  }
  Result<codec::JsonRpcRequest> request =
      mcp ? codec::ParseMcp(json.value(), governing.mcp.strict_tool_names)
          : codec::ParseJsonRpc(json.value());
  if (!request.ok()) {
    decision.verdict = Malformed(route, asked.request.path, request.error().what);
    return decision;
  }
  if (mcp || codec::MirrorsMcp(asked.fields)) {
    std::string why;
    decision.mcp_answer = RefuseMcp(asked.fields, json.value(), &why);
    if (!decision.mcp_answer.empty()) {
      decision.verdict = Malformed(route, asked.request.path, why);
      return decision;
    }
  }
  decision.verdict = DecideRpc(route, asked.request, request.value());
  if (mcp && !decision.verdict.allowed) {
    decision.mcp_answer = OfferInitialize(route, asked, request.value(), json.value());
  }
  decision.calls = std::move(request.value().calls);
  return decision;
}

}  // namespace

std::optional<Verdict> DecideBodyHead(const Route& route, const BodyRequest& asked) {
  bool upgrade = asked.request.websocket_upgrade;
  if (upgrade || !route.NeedsBody(asked.request.path)) return route.Decide(asked.request);
  const Endpoint* governing = route.GoverningEndpoint(asked.request.path);
  Status readable = codec::CheckJsonBodyFields(asked.fields);
  if (!readable.ok()) return Malformed(route, asked.request.path, readable.error().what);
  if (governing->protocol != Protocol::kGraphql && IsReceiveStream(asked)) {
    Status agree = codec::CompareMcpFields(asked.fields);
    if (!agree.ok()) return Malformed(route, asked.request.path, agree.error().what);
    return DecideReceiveStream(route, asked.request);
  }
  bool too_long = asked.framing.kind == codec::BodyFraming::kLength &&
                  asked.framing.length > governing->body_bytes_max;
  if (too_long) return DecideTooLong(route, asked.request.path);
  return std::nullopt;
}

JudgedBody DecideBody(const Route& route, const BodyRequest& asked, std::string_view body) {
  std::optional<Verdict> verdict = DecideBodyHead(route, asked);
  if (verdict) return {std::move(*verdict), {}, {}};
  const Endpoint& governing = *route.GoverningEndpoint(asked.request.path);
  if (body.size() > governing.body_bytes_max) {
    return {DecideTooLong(route, asked.request.path), {}, {}};
  }
  if (governing.protocol == Protocol::kGraphql) return DecideOperations(route, asked, body);
  return DecideCalls(route, governing, asked, body);
}

Verdict DecideTooLong(const Route& route, std::string_view path) {
  const Endpoint* governing = route.GoverningEndpoint(path);
  size_t bytes_max = governing == nullptr ? 0 : governing->body_bytes_max;
  return Malformed(route, path, "a body longer than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace policy
