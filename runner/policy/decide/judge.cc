// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/judge.h"

#include "codec/wire/query.h"

namespace policy {

bool IsNarrower(const CompiledEndpoint& endpoint, const CompiledEndpoint* than) {
  if (than == nullptr || endpoint.specificity > than->specificity) return true;
  return endpoint.specificity == than->specificity && than->audits() && !endpoint.audits();
}

std::string_view RequestFault(std::string_view path, std::string_view query) {
  if (path.find('\0') != std::string_view::npos) return "a zero byte in the path";
  if (query.empty()) return {};
  codec::QueryReader reader(query);
  while (reader.Next()) {
    bool zero = reader.key().find('\0') != std::string_view::npos ||
                reader.value().find('\0') != std::string_view::npos;
    if (zero) return "a zero byte in the query";
  }
  return reader.error();
}

std::optional<std::string> SlashReading(std::string_view path, bool encoded_slash) {
  std::string reading;
  bool changed = false;
  for (size_t i = 0; i < path.size(); ++i) {
    std::string_view escape = path.substr(i, 3);
    bool slash = escape == "%5C" || (encoded_slash && escape == "%2F");
    if (slash) i += 2;
    changed = changed || slash;
    char c = slash ? '/' : path[i];
    if (c != '/' || !reading.ends_with('/')) reading += c;
  }
  if (!changed) return std::nullopt;
  return reading;
}

Verdict Refuse(const Route& route, Reason reason, const CompiledEndpoint* governing,
               std::string_view detail) {
  Verdict verdict;
  const CompiledEndpoint* named = governing != nullptr       ? governing
                                  : !route.judging().empty() ? route.judging().front()
                                                             : nullptr;
  verdict.reason = reason;
  verdict.detail = std::string(detail);
  if (named != nullptr) {
    verdict.policy = named->policy;
    verdict.endpoint = named->source;
  }
  if (governing != nullptr) verdict.governing = governing->source;
  return verdict;
}

void Judge::Take(const CompiledEndpoint& endpoint, const EndpointVerdict& examined) {
  if (judged_ == nullptr) judged_ = &endpoint;
  if (examined.kind == EndpointVerdict::kDenied && denied_ == nullptr) {
    denied_ = &endpoint;
    deny_ = examined;
  } else if (examined.kind == EndpointVerdict::kAllowed && allowed_ == nullptr) {
    allowed_ = &endpoint;
    allow_ = examined;
  }
}

Verdict Judge::Conclude(Reason not_permitted) const {
  Verdict verdict = Refuse(route_, not_permitted, governing_, {});
  const CompiledEndpoint* decider = denied_ != nullptr    ? denied_
                                    : allowed_ != nullptr ? allowed_
                                                          : judged_;
  if (decider != nullptr) {
    verdict.policy = decider->policy;
    verdict.endpoint = decider->source;
  }
  if (denied_ != nullptr) {
    verdict.reason = deny_.reason;
    verdict.rule = deny_.rule;
  } else if (allowed_ != nullptr) {
    verdict.reason = Reason::kAllowed;
    verdict.rule = allow_.rule;
    verdict.allowed = true;
    return verdict;
  }
  verdict.audited = governing_ != nullptr && governing_->audits();
  verdict.allowed = verdict.audited;
  return verdict;
}

EndpointVerdict ExamineHead(const CompiledEndpoint& endpoint, const HttpRequest& request) {
  const HttpRule* rule = endpoint.deny.Find(request.method, request.path, request.query);
  if (rule != nullptr) return {EndpointVerdict::kDenied, rule, Reason::kDenyRule};
  rule = endpoint.allow.Find(request.method, request.path, request.query);
  if (rule != nullptr) return {EndpointVerdict::kAllowed, rule, Reason::kAllowed};
  return {};
}

Verdict JudgeHead(const Route& route, const HttpRequest& request) {
  return Judge(route).Decide(
      request.path, Reason::kNotPermitted,
      [&](const CompiledEndpoint& endpoint) { return ExamineHead(endpoint, request); });
}

}  // namespace policy
