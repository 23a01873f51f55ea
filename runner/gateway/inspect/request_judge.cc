// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/request_judge.h"

#include <algorithm>

#include "base/sys.h"
#include "codec/data/position.h"
#include "codec/wire/http_target.h"
#include "codec/wire/query.h"
#include "gateway/budget/model_api.h"
#include "gateway/http/refusal.h"
#include "gateway/http/request_id.h"
#include "gateway/inspect/body_judge.h"
#include "gateway/inspect/named_method.h"

namespace gateway {
namespace {

constexpr std::string_view kVia = "1.1 openshell-sandbox";
// The request target, made comparable.
struct Target {
  std::string path;   // Canonical, or "*" of OPTIONS.
  std::string query;  // Raw.
};

record::Event NewEvent(const RequestContext& context, record::Event::Outcome outcome) {
  record::Event event;
  event.kind = record::Event::Kind::kRequest;
  event.outcome = outcome;
  event.host = context.authority.host;
  event.port = context.authority.port;
  event.scheme = context.scheme;
  const std::string& policy = context.route.handling().policy;
  event.policy = policy.empty() ? "-" : policy;
  event.engine = record::Engine::kL7;
  return event;
}

// "METHOD host:port/path", as OpenShell's texts name a request.
std::string NameRequest(const record::Event& event) {
  return event.method + " " + event.host + ":" + std::to_string(event.port) + event.path;
}

// A request whose path could not be read is recorded without one.
RequestVerdict Refuse(record::Event event, record::Engine engine, std::string reason,
                      std::optional<Refusal> refusal) {
  RequestVerdict verdict;
  event.outcome = record::Event::Outcome::kDenied;
  event.engine = engine;
  event.reason = std::move(reason);
  event.message = "L7_REQUEST deny " + NameRequest(event) + " reason=" + event.reason;
  verdict.refusal = std::move(refusal);
  verdict.event = std::move(event);
  return verdict;
}

RequestVerdict RefuseAuthority(record::Event event, const std::string& what) {
  return Refuse(std::move(event), record::Engine::kRequestAuthority, what,
                NewRefusal(403, "request_authority_mismatch", what));
}

// Refuses a malformed request. In a tunnel it gets no answer; the proxy's own clients are told.
RequestVerdict RefuseMalformed(const RequestContext& context, record::Event event,
                               const std::string& why, std::string_view error) {
  std::optional<Refusal> refusal;
  if (context.forward) refusal = NewRefusal(400, error, why);
  return Refuse(std::move(event), record::Engine::kHttpParser, why, std::move(refusal));
}

bool IsAuthority(const RequestContext& context, std::string_view text) {
  return ParseAuthority(text, context.default_port()) == context.authority;
}

// Returns an empty text if the request is for the authority that the connection was allowed for.
std::string CompareAuthority(const RequestContext& context, const codec::RequestHead& head) {
  std::optional<AbsoluteTarget> absolute = ParseAbsoluteTarget(head.target);
  const codec::HttpField* host = codec::FindField(head.fields, "host");
  uint16_t default_port = context.default_port();
  bool same = host != nullptr && host->value == context.authority.host &&
              context.authority.port == default_port &&
              context.authority.host.find(':') == std::string::npos;
  if (host != nullptr && !same && !IsAuthority(context, host->value)) {
    return "Host header does not match " + RenderAuthority(context.authority, 0);
  }
  if (!absolute.has_value() || head.target.front() == '/') return "";
  if (absolute->scheme != context.scheme || !IsAuthority(context, absolute->authority)) {
    return "request target does not match " + RenderAuthority(context.authority, 0);
  }
  return "";
}

Result<Target> ParseTarget(const RequestContext& context, const codec::RequestHead& head) {
  if (head.target == "*" && head.method == "OPTIONS") return Target{"*", ""};
  std::string_view raw = head.target;
  std::optional<AbsoluteTarget> absolute;
  if (raw.front() != '/') {
    absolute = ParseAbsoluteTarget(raw);
    if (!absolute.has_value()) return Error{Code::kInvalid, "invalid request target"};
    raw = absolute->path_and_query;
  }
  if (raw.find('#') != std::string_view::npos) {
    return Error{Code::kInvalid, "fragment in the request target"};
  }
  size_t question = std::min(raw.find('?'), raw.size());
  Target target;
  target.query = raw.substr(std::min(question + 1, raw.size()));
  target.path = TRY(
      codec::CanonicalPath(raw.substr(0, question), context.route.handling().allow_encoded_slash));
  TRY(codec::ParseQuery(target.query));
  return target;
}

// Upgrades: WebSocket passes, HTTP/2 is refused, anything else is ignored, as RFC 9110 allows.
bool AsksForHttp2(const codec::RequestHead& head) {
  return codec::FieldHasToken(head.fields, "upgrade", "h2c") ||
         codec::FindField(head.fields, "http2-settings") != nullptr;
}

bool AsksForWebSocket(const codec::RequestHead& head, const codec::BodyFraming& framing) {
  return head.method == "GET" && head.minor_version == 1 &&
         framing.kind == codec::BodyFraming::kNone &&
         codec::FieldHasToken(head.fields, "connection", "upgrade") &&
         codec::FieldHasToken(head.fields, "upgrade", "websocket") &&
         codec::FindField(head.fields, "sec-websocket-key") != nullptr;
}

// Its endpoint judges the messages, too, or is the reason that none may be sent.
bool IsAboutWebSocket(const policy::Verdict& verdict) {
  return verdict.reason == policy::Reason::kUpgradeNotJudged ||
         (verdict.governing != nullptr &&
          verdict.governing->protocol == policy::Protocol::kWebSocket);
}

// The fields as they go out: ours in front, the client's end-to-end ones, `sent`, behind. What is
// judged by its body goes out under no method but its own.
codec::HttpFields PlanFields(const RequestContext& context, codec::HttpFields sent,
                             const RequestVerdict& verdict, bool by_body) {
  codec::HttpFields fields;
  fields.reserve(sent.size() + 4);
  fields.push_back({"Host", RenderAuthority(context.authority, context.default_port())});
  for (codec::HttpField& field : sent) {
    bool dropped = codec::EqualIgnoringCase(field.name, "host") ||
                   codec::StandsForPath(field.name) ||
                   (by_body && codec::StandsForMethod(field.name));
    if (!dropped) fields.push_back(std::move(field));
  }
  if (context.forward) fields.push_back({"Via", std::string(kVia)});
  if (verdict.websocket) fields.push_back({"Upgrade", "websocket"});
  return fields;
}

// Some servers take the first of a list, others the last.
void AddTokens(std::string_view value, std::vector<std::string>& tokens) {
  while (!value.empty()) {
    std::string_view token = value.substr(0, value.find_first_of(" \t,;"));
    if (!token.empty()) tokens.emplace_back(token);
    value.remove_prefix(std::min(token.size() + 1, value.size()));
  }
}

// Returns what some servers would take for the method in place of the one that was sent. Nearly
// always empty.
std::vector<std::string> OtherMethods(const codec::HttpFields& fields, std::string_view query) {
  std::vector<std::string> methods;
  for (const codec::HttpField& field : fields) {
    if (codec::StandsForMethod(field.name)) AddTokens(field.value, methods);
  }
  for (std::string_view separators : {"&", "&;"}) {
    if (separators != "&" && query.find(';') == std::string_view::npos) break;
    for (codec::QueryReader pairs(query, separators); pairs.Next();) {
      if (NamesMethod(pairs.key())) methods.emplace_back(pairs.value());
    }
  }
  return methods;
}

// A request that names other methods has to be allowed as each; `request` is left as the one that
// was refused.
policy::Verdict Decide(const policy::Route& route, const std::vector<std::string>& other_methods,
                       policy::HttpRequest& request) {
  policy::Verdict verdict = route.Decide(request);
  for (const std::string& method : other_methods) {
    if (!verdict.allowed || verdict.audited) break;
    request.method = method;
    verdict = route.Decide(request);
  }
  return verdict;
}

// Puts what the record says of a decision into `event`.
void NoteDecision(const RequestContext& context, const policy::Decision& decision,
                  record::Event& event) {
  if (!decision.policy.empty()) event.policy = decision.policy;
  if (decision.at.line > 0) event.position = codec::LocateIn(context.policy_file, decision.at);
  event.by_deny_rule = decision.by_deny_rule;
  if (!decision.audited) return;
  event.outcome = record::Event::Outcome::kAudited;
  event.reason = decision.reason;
}

// `sent` are the fields that go on: what is judged is what the server reads.
BodyQuestion QuestionOf(const RequestContext& context, const codec::RequestHead& head,
                        const codec::HttpFields& sent, const codec::BodyFraming& framing,
                        std::string_view path, std::string_view shown_path,
                        std::string_view query) {
  BodyQuestion question{context.route, context.caller, head.method, path,
                        shown_path,    query,          sent,        framing};
  question.forward = context.forward;
  question.policy_version = context.lease.version();
  question.websocket_upgrade = AsksForWebSocket(head, framing);
  return question;
}

// A verdict that the body had a part in: the refusal, or what is to be recorded in `event`.
std::optional<RequestVerdict> TakeBodyVerdict(const RequestContext& context,
                                              const BodyVerdict& verdict, record::Event& event) {
  policy::Decision decision;
  decision.audited = verdict.verdict.audited;
  decision.policy = verdict.verdict.policy_name();
  decision.reason = verdict.reason;
  decision.at = verdict.verdict.at();
  decision.by_deny_rule = verdict.verdict.by_deny_rule();
  NoteDecision(context, decision, event);
  event.engine = verdict.engine;
  event.protocol = verdict.protocol;
  event.operations = verdict.operations;
  if (verdict.refusal.has_value()) {
    RequestVerdict refused =
        Refuse(event, verdict.refusal->engine, verdict.refusal->reason, verdict.refusal->answer);
    if (!verdict.message.empty()) refused.event.message = verdict.message;
    return refused;
  }
  event.message = verdict.message;
  return std::nullopt;
}

// Refuses a request because the decision about its connection holds no more.
RequestVerdict RefuseReplaced(const RequestContext& context, record::Event event) {
  std::string why = NameRequest(event) + " not permitted because policy changed";
  event.policy = "-";
  return Refuse(std::move(event),
                context.route.handling().inspect ? record::Engine::kL7 : record::Engine::kOpa, why,
                NewRefusal(403, "policy_denied", why));
}

RequestVerdict RefuseByRule(const RequestContext& context, record::Event event,
                            const policy::Decision& decision) {
  const bool upgrade = event.protocol == "websocket";
  RefusedRequest refused{event.policy, decision.reason, event.method,         event.path,
                         event.host,   event.port,      context.caller.binary};
  if (upgrade) refused.protocol = event.protocol;
  Refusal refusal =
      context.forward ? NewRefusal(403, "policy_denied",
                                   NameRequest(event) + " denied by L7 policy: " + decision.reason)
                      : NewRequestRefusal(refused);
  if (upgrade && RecogniseModelCall(event.method, event.path, true).api == ModelApi::kSocket) {
    refusal.status = 426;  // Its clients ask over HTTP then.
  }
  return Refuse(std::move(event), record::Engine::kL7, decision.reason, std::move(refusal));
}

// The last step: the request may pass, so its placeholders become credentials.
RequestVerdict PlanRequest(const RequestContext& context, const codec::RequestHead& head,
                           codec::HttpFields sent, Target target, const codec::BodyFraming& framing,
                           const std::optional<BodyNeeds>& needs, record::Event event) {
  RequestVerdict verdict;
  verdict.kind = RequestVerdict::kPass;
  verdict.request.method = head.method;
  verdict.websocket = AsksForWebSocket(head, framing);
  verdict.expects_continue = head.minor_version == 1 && framing.kind != codec::BodyFraming::kNone &&
                             codec::FieldHasToken(head.fields, "expect", "100-continue");
  // The answer to TRACE is the request (RFC 9110, 9.3.8): the credential would come back with it.
  if (codec::EqualIgnoringCase(head.method, "TRACE") &&
      context.credentials.BoundTo(context.authority.host, context.authority.port)) {
    std::string why = "TRACE to a host that a credential is bound to";
    verdict = Refuse(std::move(event), record::Engine::kCredentials, why,
                     NewRefusal(403, "credential_endpoint_mismatch", why));
    return verdict;
  }
  verdict.request.fields = PlanFields(context, std::move(sent), verdict, needs.has_value());
  verdict.endpoint = context.route.GoverningEndpoint(target.path);
  verdict.query = target.query;
  verdict.path = target.path;  // Bindings are for the path as the client wrote it.
  std::optional<CredentialRefusal> refusal = context.credentials.Apply(
      {context.authority.host, context.authority.port, verdict.path, context.confidential,
       verdict.endpoint != nullptr && verdict.endpoint->signing != policy::Signing::kNone},
      {&verdict.request.fields, &target.path, &target.query});
  if (refusal.has_value()) {
    verdict = Refuse(std::move(event), record::Engine::kCredentials, refusal->detail,
                     NewRefusal(refusal->status, refusal->error, refusal->detail));
    verdict.grant = refusal->grant;
    return verdict;
  }
  // If the gateway vouches for a request, its id is one.
  bool has_id = codec::FindField(verdict.request.fields, "x-request-id") != nullptr;
  if (has_id && context.credentials.BoundTo(context.authority.host, context.authority.port)) {
    KeepRequestId(&verdict.request.fields, sys::RandomHex());
  }
  verdict.request.target = target.query.empty() ? target.path : target.path + "?" + target.query;
  verdict.event = std::move(event);
  if (needs.has_value() && !needs->verdict.has_value()) {
    verdict.judged_body_bytes_max = needs->bytes_max;
  }
  return verdict;
}

}  // namespace

RequestVerdict RefuseAllowed(const RequestVerdict& allowed, const OutgoingRefusal& refusal) {
  record::Event event = allowed.event;
  event.by_deny_rule = false;  // An audited one: it is not what refuses now.
  return Refuse(refusal.event.value_or(std::move(event)), refusal.engine, refusal.reason,
                refusal.answer);
}

RequestVerdict JudgeMalformed(const RequestContext& context, std::string_view why) {
  record::Event event = NewEvent(context, record::Event::Outcome::kDenied);
  event.kind = record::Event::Kind::kConnection;
  return RefuseMalformed(context, std::move(event), std::string(why), "invalid_request");
}

RequestVerdict JudgeRequest(const RequestContext& context, const codec::RequestHead& head,
                            const std::optional<codec::BodyFraming>& known) {
  record::Event event = NewEvent(context, record::Event::Outcome::kAllowed);
  event.method = head.method;
  Result<codec::BodyFraming> framing =
      known.has_value() ? Result<codec::BodyFraming>(*known) : codec::RequestFraming(head);
  if (!framing.ok()) {
    return RefuseMalformed(context, std::move(event), framing.error().what, "invalid_request");
  }
  std::string mismatch = CompareAuthority(context, head);
  if (!mismatch.empty()) return RefuseAuthority(std::move(event), mismatch);
  Result<Target> target = ParseTarget(context, head);
  if (!target.ok()) {
    return RefuseMalformed(context, std::move(event), target.error().what,
                           "invalid_request_target");
  }
  event.path = context.credentials.Redact(target.value().path);
  if (AsksForHttp2(head)) {
    std::string why = "a connection does not change from HTTP/1 to HTTP/2; it may begin with it";
    return Refuse(std::move(event), record::Engine::kL7, why,
                  NewRefusal(403, "unsupported_l7_protocol", why));
  }
  if (context.lease.replaced()) return RefuseReplaced(context, std::move(event));
  bool upgrade = AsksForWebSocket(head, framing.value());
  policy::HttpRequest request{head.method, target.value().path, target.value().query, upgrade};
  codec::HttpFields sent = codec::EndToEndFields(head.fields);
  std::optional<BodyNeeds> needs = FindBodyNeeds(
      QuestionOf(context, head, sent, framing.value(), request.path, event.path, request.query));
  if (needs.has_value() && needs->verdict.has_value()) {
    std::optional<RequestVerdict> refused = TakeBodyVerdict(context, *needs->verdict, event);
    if (refused.has_value()) return std::move(*refused);
  } else if (!needs.has_value()) {
    const std::vector<std::string> others = OtherMethods(sent, request.query);
    policy::Verdict verdict = Decide(context.route, others, request);
    if (!verdict.allowed) event.method = request.method;
    policy::Decision decision =
        policy::DescribeVerdict(verdict, context.route, context.caller, request);
    NoteDecision(context, decision, event);
    if (upgrade && IsAboutWebSocket(verdict)) event.protocol = "websocket";
    if (!decision.allowed) return RefuseByRule(context, std::move(event), decision);
    event.message.reserve(64 + event.host.size() + event.path.size() + decision.reason.size());
    event.message.append("L7_REQUEST ").append(decision.audited ? "audit " : "allow ");
    event.message.append(NameRequest(event));
    if (!decision.reason.empty()) event.message.append(" reason=").append(decision.reason);
  }
  return PlanRequest(context, head, std::move(sent), std::move(target).value(), framing.value(),
                     needs, std::move(event));
}

std::optional<OutgoingRefusal> RefuseOtherMethods(const RequestContext& context,
                                                  const RequestVerdict& allowed) {
  if (allowed.judged_body_bytes_max > 0) return std::nullopt;
  for (std::string_view method : {"PUT", "PATCH", "DELETE", "GET"}) {
    policy::HttpRequest request{method, allowed.path, allowed.query, false};
    policy::Verdict verdict = context.route.Decide(request);
    if (verdict.allowed) continue;
    policy::Decision decision =
        policy::DescribeVerdict(verdict, context.route, context.caller, request);
    record::Event event = allowed.event;
    event.method = method;
    event.message.clear();
    NoteDecision(context, decision, event);
    RequestVerdict refused = RefuseByRule(context, std::move(event), decision);
    refused.event.message +=
        " (the body names a method: PUT, PATCH, DELETE and GET must all be allowed)";
    return OutgoingRefusal{std::move(*refused.refusal), record::Engine::kL7, decision.reason,
                           std::move(refused.event)};
  }
  return std::nullopt;
}

std::optional<RequestVerdict> JudgeWholeBody(const RequestContext& context,
                                             const codec::RequestHead& head,
                                             const codec::BodyFraming& framing,
                                             std::optional<std::string_view> body,
                                             RequestVerdict& allowed) {
  const codec::HttpFields sent = codec::EndToEndFields(head.fields);
  BodyQuestion question =
      QuestionOf(context, head, sent, framing, allowed.path, allowed.event.path, allowed.query);
  bool judged = body.has_value() && body->size() <= allowed.judged_body_bytes_max;
  BodyVerdict verdict = judged ? JudgeBody(question, *body) : JudgeTooLong(question);
  return TakeBodyVerdict(context, verdict, allowed.event);
}

}  // namespace gateway
