// SPDX-License-Identifier: Apache-2.0
#include "advise/explain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "advise/nearest_rule.h"
#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/punycode.h"
#include "codec/wire/http_head.h"
#include "codec/wire/http_target.h"
#include "policy/decide/body_decide.h"
#include "policy/decide/compiled.h"
#include "policy/decide/websocket_decide.h"
#include "policy/model/after_untrusted.h"
#include "policy/model/host_pattern.h"

namespace advise {
namespace {

using codec::RequestUrl;

// "audit" is an allow that a rule was against.
std::string_view Word(const policy::Decision& decision) {
  if (decision.audited) return "audit";
  return decision.allowed ? "allow" : "deny";
}

std::string AuthorityText(const RequestUrl& url) {
  std::string host = url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return host + ":" + std::to_string(url.port);
}

// The URL without the port its scheme has anyway.
std::string UrlText(const RequestUrl& url, std::string_view path, std::string_view query) {
  bool usual =
      (url.scheme == "https" && url.port == 443) || (url.scheme == "http" && url.port == 80);
  std::string authority = AuthorityText(url);
  if (usual) authority.resize(authority.rfind(':'));
  std::string text = url.scheme + "://" + authority;
  text += path;
  if (!query.empty()) text += "?" + std::string(query);
  return text;
}

// The first program that a policy for this place names. A pattern stands for itself: it matches its
// own text.
std::string ExampleProgram(const policy::Policy& policy, const RequestUrl& url) {
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      bool port =
          std::find(endpoint.ports.begin(), endpoint.ports.end(), url.port) != endpoint.ports.end();
      bool host = endpoint.host.empty() ||
                  policy::HostMatches(endpoint.host, policy::CanonicalHost(url.host));
      if (port && host && !network.binaries.empty()) return network.binaries.front();
    }
  }
  return {};
}

// "wss://x" is the upgrade of "https://x".
bool TakeWebSocketScheme(std::string* url) {
  for (std::string_view scheme : {"ws://", "wss://"}) {
    if (!url->starts_with(scheme)) continue;
    url->replace(0, 2, "http");
    return true;
  }
  return false;
}

class Explainer {
 public:
  Explainer(const policy::ParsedPolicy& parsed, const Question& question, RequestUrl url,
            bool upgrade)
      : policy_(parsed.policy), question_(question), url_(std::move(url)), upgrade_(upgrade) {
    explanation_.file = parsed.file;
    explanation_.method = url_.scheme.empty() ? "CONNECT" : question.method;
    explanation_.subject =
        url_.scheme.empty() ? AuthorityText(url_) : UrlText(url_, url_.target, "");
  }

  Explanation Explain() {
    ChooseCaller();
    route_ = policy_.FindRoute(policy_.MatchCaller(caller_), url_.host, url_.port);
    bool passes = Add("connection", route_.connection()) && JudgeAddress();
    if (passes && !url_.scheme.empty()) JudgeRequest();
    const policy::Decision& last = explanation_.steps.back().decision;
    explanation_.allowed = last.allowed;
    explanation_.audited = last.audited;
    return std::move(explanation_);
  }

 private:
  bool Add(std::string_view what, policy::Decision decision) {
    explanation_.steps.push_back({std::string(what), std::move(decision)});
    return explanation_.steps.back().decision.allowed;
  }

  bool Add(std::string_view what, const policy::Verdict& verdict, const Wanted& wanted = {}) {
    explanation_.hint = RenderHint(policy_, route_, verdict, wanted, explanation_.file);
    return Add(what, policy::DescribeVerdict(verdict, route_, caller_, wanted.request));
  }

  void ChooseCaller() {
    caller_.cmdline = question_.cmdline;
    caller_.agent = true;  // Everything in a sandbox is the agent's.
    if (!question_.binaries.empty()) {
      caller_.binary = question_.binaries.front();
      caller_.ancestors = {question_.binaries.begin() + 1, question_.binaries.end()};
      return;
    }
    caller_.binary = ExampleProgram(policy_.source(), url_);
    if (!caller_.binary.empty() && caller_.binary != policy::kAgentPrograms) {
      explanation_.notes.push_back("for the program '" + caller_.binary +
                                   "'; use --binary to ask about another one");
    }
  }

  bool JudgeAddress() {
    std::vector<policy::Address> resolved;
    std::optional<policy::Address> literal = policy::ParseAddress(url_.host);
    if (literal) {
      resolved.push_back(*literal);
    } else if (question_.resolved) {
      resolved = *question_.resolved;
    } else {
      return true;
    }
    policy::AddressVerdict destination =
        policy::DecideDestination(route_.handling(), url_.host, url_.port, resolved);
    policy::Decision decision;
    decision.allowed = destination.allowed;
    decision.policy = route_.handling().policy;
    decision.reason = destination.allowed ? "the gateway may connect to this address"
                                          : explanation_.method + " " + AuthorityText(url_) +
                                                " blocked: " + destination.label;
    return Add("address", std::move(decision));
  }

  void JudgeRequest() {
    if (route_.handling().skip_tls && url_.scheme == "https") {
      explanation_.notes.push_back("tls: skip: a tunnel, whose requests are not inspected");
      return;
    }
    size_t mark = std::min(url_.target.find('?'), url_.target.size());
    std::string query = url_.target.substr(std::min(mark + 1, url_.target.size()));
    Result<std::string> path = codec::CanonicalPath(std::string_view(url_.target).substr(0, mark),
                                                    route_.handling().allow_encoded_slash);
    Result<std::vector<std::pair<std::string, std::string>>> pairs = codec::ParseQuery(query);
    if (!path.ok() || !pairs.ok()) {
      policy::Decision decision;
      decision.policy = route_.handling().policy;
      decision.reason = path.ok() ? pairs.error().what : path.error().what;
      Add("path", std::move(decision));
      return;
    }
    explanation_.path = path.value();
    explanation_.subject = UrlText(url_, explanation_.path, query);
    policy::HttpRequest request{question_.method, explanation_.path, query, upgrade_};
    if (upgrade_ && question_.method == policy::kWebSocketText) {
      JudgeMessage(request);
    } else if (route_.NeedsBody(explanation_.path)) {
      JudgeBody(request);
    } else {
      Add("request", route_.Decide(request), {request, {}, {}});
    }
    if (!route_.handling().inspect) {
      explanation_.notes.push_back("no request rules apply here: every request is allowed");
    }
  }

  void JudgeMessage(const policy::HttpRequest& message) {
    policy::HttpRequest upgrade = message;
    upgrade.method = "GET";
    if (!Add("request", route_.Decide(upgrade), {upgrade, {}, {}})) return;
    if (!policy::JudgesMessages(route_, message.path)) {
      explanation_.notes.push_back("no websocket endpoint applies here: every message is allowed");
      return;
    }
    policy::JudgedBody decided =
        policy::DecideMessage(route_, upgrade, question_.body.value_or(""));
    Add("message", decided.verdict, {message, decided.operations, {}});
  }

  void JudgeBody(const policy::HttpRequest& request) {
    policy::BodyRequest asked{request, question_.fields, {}};
    if (question_.body) asked.framing = {codec::BodyFraming::kLength, question_.body->size()};
    policy::JudgedBody decided = policy::DecideBody(route_, asked, question_.body.value_or(""));
    Add("body", decided.verdict, {request, decided.operations, decided.calls});
    if (!question_.body && request.method != "GET") {
      explanation_.notes.push_back("the decision depends on the body: give one with --body");
    }
  }

  policy::CompiledPolicy policy_;
  const Question& question_;
  RequestUrl url_;
  bool upgrade_ = false;
  policy::Caller caller_;
  policy::Route route_;
  Explanation explanation_;
};

// Returns whether requests at this path ask a model, as far as its end says.
bool AsksModel(std::string_view path) {
  constexpr auto kEnds =
      std::to_array<std::string_view>({"/messages", "/chat/completions", "/responses",
                                       ":generateContent", ":streamGenerateContent"});
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return path.ends_with(end); });
}

// Notes what the policy says of an allowed request beyond its own decision.
void NoteBeyond(const policy::ParsedPolicy& parsed, const Question& question,
                Explanation* explanation) {
  const policy::Policy& policy = parsed.policy;
  if (!explanation->allowed) return;
  if (question.method == "POST" && AsksModel(explanation->path)) {
    explanation->notes.push_back("tools of the model's provider that it may ask for: " +
                                 policy::RenderHostedTools(policy.hosted_tools));
  }
  if (!policy.after_untrusted.used()) return;
  policy::ParsedPolicy narrowed = parsed;
  narrowed.policy = policy::Narrow(policy, {}, {}, "");
  narrowed.policy.after_untrusted = {};
  Result<Explanation> after = Explain(narrowed, question);
  const bool stays = after.ok() && after.value().allowed;
  explanation->notes.push_back(
      stays ? "after a stranger's text: still allowed"
            : "after a stranger's text: refused, unless the host is the run's model");
}

}  // namespace

Result<Explanation> Explain(const policy::ParsedPolicy& parsed, const Question& question) {
  std::string text = question.url;
  bool upgrade = TakeWebSocketScheme(&text);
  Result<RequestUrl> url = codec::ParseRequestUrl(text);
  if (!url.ok()) {
    return Error{Code::kInvalid, "'" + question.url + "': " + url.error().what,
                 "write a URL like https://api.example.com/path, or host:port"};
  }
  if (std::optional<std::string> name = codec::PunycodeHost(url.value().host)) {
    return Error{Code::kInvalid, "'" + question.url + "': the host name is not ASCII",
                 "write it as " + *name};
  }
  if (!codec::IsMethod(question.method)) {
    std::string upper = ascii::UpperCase(question.method);
    return Error{Code::kInvalid, "'" + question.method + "' is not a method",
                 "--method " + (codec::IsMethod(upper) ? upper : "GET")};
  }
  Explanation explanation = Explainer(parsed, question, std::move(url).value(), upgrade).Explain();
  NoteBeyond(parsed, question, &explanation);
  return explanation;
}

Result<Explanation> Explain(const policy::ParsedPolicy& parsed, std::string_view url_or_hostport,
                            std::string_view method, const std::vector<std::string>& binaries) {
  Question question;
  question.url = std::string(url_or_hostport);
  if (!method.empty()) question.method = std::string(method);
  question.binaries = binaries;
  return Explain(parsed, question);
}

std::string RenderExplanation(const Explanation& explanation) {
  std::string text = std::string(Word(explanation.steps.back().decision)) + "  " +
                     codec::EscapedLine(explanation.method + " " + explanation.subject) + "\n";
  for (const ExplanationStep& step : explanation.steps) {
    text += "  " + step.what + ": " + std::string(Word(step.decision));
    if (step.decision.at.line > 0) {
      text += " by " + codec::Locate(explanation.file, step.decision.at);
    }
    text += ": " + codec::EscapedLine(step.decision.reason) + "\n";
  }
  if (!explanation.hint.empty()) text += "  " + codec::EscapedLine(explanation.hint) + "\n";
  for (const std::string& note : explanation.notes) {
    text += "  note: " + codec::EscapedLine(note) + "\n";
  }
  return text;
}

std::string RenderExplanationJson(const Explanation& explanation) {
  const policy::Decision& last = explanation.steps.back().decision;
  codec::Json json = codec::Json::EmptyObject();
  json.Set("decision", Word(last));
  json.Set("method", explanation.method);
  json.Set("subject", explanation.subject);
  json.Set("policy", last.policy);
  json.Set("reason", last.reason);
  if (last.at.line > 0) json.Set("at", codec::Locate(explanation.file, last.at));
  codec::Json steps = codec::Json::EmptyArray();
  for (const ExplanationStep& step : explanation.steps) {
    codec::Json entry = codec::Json::EmptyObject();
    entry.Set("what", step.what);
    entry.Set("decision", Word(step.decision));
    entry.Set("policy", step.decision.policy);
    entry.Set("reason", step.decision.reason);
    if (step.decision.at.line > 0) {
      entry.Set("at", codec::Locate(explanation.file, step.decision.at));
    }
    steps.Push(std::move(entry));
  }
  json.Set("steps", std::move(steps));
  if (!explanation.hint.empty()) json.Set("hint", explanation.hint);
  json.Set("notes", codec::Json::FromStrings(explanation.notes));
  return codec::RenderJson(json);
}

}  // namespace advise
