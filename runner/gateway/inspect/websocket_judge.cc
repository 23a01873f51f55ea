// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_judge.h"

#include <utility>

#include "codec/data/position.h"
#include "gateway/credential/body_credentials.h"
#include "gateway/credential/middleware_redact.h"
#include "policy/decide/websocket_decide.h"

namespace gateway {
namespace {

constexpr std::string_view kBinary = "WEBSOCKET_BINARY";

WebSocketEnd NotRecorded() {
  return {codec::WebSocketClose::kInternalError, "the gateway is shutting down", false};
}

policy::HttpRequest UpgradeOf(const MessageQuestion& question) {
  return {"GET", question.target.path, question.query, true};
}

}  // namespace

MessageTreatment FindMessageTreatment(const policy::Route& route,
                                      const std::vector<policy::Middleware>& middlewares,
                                      const CredentialTarget& target) {
  const policy::Endpoint* governing = route.GoverningEndpoint(target.path);
  MessageTreatment treatment;
  treatment.judged = policy::JudgesMessages(route, target.path);
  treatment.redacts = RedactsMessages(middlewares, target.host);
  treatment.rewrites = governing != nullptr && governing->websocket_credential_rewrite;
  return treatment;
}

PolicyMessageJudge::PolicyMessageJudge(const MessageQuestion& question, record::Event opened,
                                       std::function<bool(record::Event)> record)
    : question_(question), base_(std::move(opened)), record_(std::move(record)) {
  base_.outcome = record::Event::Outcome::kAllowed;
  base_.engine = record::Engine::kL7WebSocket;
  base_.method = policy::kWebSocketText;
  base_.protocol = "websocket";
  base_.reason.clear();
  base_.position.clear();
  base_.by_deny_rule = false;
}

// The reason stands in `event`; its place and its decision go in front of it.
bool PolicyMessageJudge::Record(record::Event event) {
  const char* decision = event.outcome == record::Event::Outcome::kAllowed   ? "allow "
                         : event.outcome == record::Event::Outcome::kAudited ? "audit "
                                                                             : "deny ";
  event.message = std::string("WEBSOCKET_L7_REQUEST ") + decision + event.method + " " +
                  event.host + ":" + std::to_string(event.port) + event.path +
                  (event.reason.empty() ? "" : " reason=" + event.reason);
  return record_(std::move(event));
}

std::optional<WebSocketEnd> PolicyMessageJudge::Refuse(record::Engine engine, std::string reason) {
  record::Event event = base_;
  event.outcome = record::Event::Outcome::kDenied;
  event.engine = engine;
  event.reason = reason;
  if (!Record(std::move(event))) return NotRecorded();
  return WebSocketEnd{codec::WebSocketClose::kPolicy, std::move(reason), false};
}

// Records what was decided by rules; `close` is the code of a refusal.
std::optional<WebSocketEnd> PolicyMessageJudge::Conclude(const policy::JudgedBody& decision,
                                                         codec::WebSocketClose close) {
  const policy::Verdict& verdict = decision.verdict;
  policy::HttpRequest shown = UpgradeOf(question_);
  shown.method = policy::kWebSocketText;
  shown.path = base_.path;
  record::Event event = base_;
  event.operations = policy::RefusedOperations(decision);
  event.reason = policy::RenderReason(verdict, question_.route, question_.caller, shown);
  if (verdict.policy != nullptr) event.policy = verdict.policy_name();
  if (verdict.at().line > 0) event.position = codec::LocateIn(question_.policy_file, verdict.at());
  event.by_deny_rule = verdict.by_deny_rule();
  event.outcome = !verdict.allowed  ? record::Event::Outcome::kDenied
                  : verdict.audited ? record::Event::Outcome::kAudited
                                    : record::Event::Outcome::kAllowed;
  std::string reason = event.reason;
  if (!Record(std::move(event))) return NotRecorded();
  if (verdict.allowed) return std::nullopt;
  return WebSocketEnd{close, std::move(reason), false};
}

std::optional<WebSocketEnd> PolicyMessageJudge::JudgeText(std::string& text) {
  if (question_.treatment.judged) {
    std::optional<WebSocketEnd> end =
        Conclude(policy::DecideMessage(question_.route, UpgradeOf(question_), text),
                 codec::WebSocketClose::kPolicy);
    if (end.has_value()) return end;
  }
  if (question_.treatment.redacts) {
    std::string redacted;
    KeyEraser().Feed(text, true, redacted);
    text = std::move(redacted);
  }
  if (!question_.treatment.rewrites) return std::nullopt;
  std::optional<CredentialRefusal> refusal =
      RewriteMessage(question_.credentials, question_.target, &text);
  if (!refusal.has_value()) return std::nullopt;
  return Refuse(record::Engine::kCredentials, std::move(refusal->detail));
}

// Binary messages are not read, so they must not say what a text message may not; and where
// credentials are inserted into text they could leave unseen in these (OpenShell). What passes is
// not recorded.
std::optional<WebSocketEnd> PolicyMessageJudge::JudgeBinary() {
  if (question_.treatment.judged) {
    const policy::JudgedBody decision{
        policy::DecideBinaryMessage(question_.route, UpgradeOf(question_)), {}, {}};
    const bool unread = decision.verdict.reason == policy::Reason::kGraphqlMalformed;
    std::optional<WebSocketEnd> end;
    if (!decision.verdict.allowed || decision.verdict.audited) {
      end = Conclude(decision,
                     unread ? codec::WebSocketClose::kNotText : codec::WebSocketClose::kPolicy);
    }
    if (end.has_value()) return end;
  }
  if (!question_.treatment.rewrites) return std::nullopt;
  base_.method = kBinary;
  return Refuse(record::Engine::kL7WebSocket,
                "binary messages are not allowed where credentials are rewritten");
}

}  // namespace gateway
