// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/version.h"
#include "telemetry/attributes.h"
#include "telemetry/names.h"
#include "telemetry/otlp/messages.h"
#include "telemetry/signals.h"

namespace telemetry {

using report::OutcomeKind;

namespace {

// What a pipeline's runs have in common; what tells them apart is on the run's span, so that
// metrics of many runs can be summed.
Message RenderResource(const Exported& exported) {
  const auto& [run, settings, ids, traced] = exported;
  const report::EventRecord& event = run.record.event;
  Attributes attributes;
  attributes.Text(name::kServiceName, settings.service_name);
  attributes.Texts(settings.resource);
  std::vector<std::pair<std::string_view, std::string>> own = {
      {name::kServiceVersion, std::string(kVersion)},
      {name::kSdkName, "agentic-ci"},
      {name::kSdkLanguage, "cpp"},
      {name::kSdkVersion, std::string(kVersion)},
      {name::kVcsProvider, event.forge}};
  const size_t slash = event.repository.rfind('/');
  if (slash != std::string::npos) {
    own.emplace_back(name::kVcsOwner, event.repository.substr(0, slash));
    own.emplace_back(name::kVcsRepository, event.repository.substr(slash + 1));
  }
  attributes.Texts(own).Texts(settings.pipeline);
  Message resource;
  attributes.AppendTo(otlp::kResourceAttributes, &resource);
  return resource;
}

Message RenderScope() {
  Message scope;
  scope.Text(otlp::kScopeName, "agentic-ci").Text(otlp::kScopeVersion, kVersion);
  return scope;
}

}  // namespace

Message RenderRequest(const Exported& exported, const Field& in_request, const Field& in_resource,
                      Message items) {
  Message scoped;
  scoped.Child(otlp::kScope, RenderScope()).Append(std::move(items));
  Message resource;
  resource.Child(otlp::kResource, RenderResource(exported)).Child(in_resource, std::move(scoped));
  resource.Text(otlp::kSchemaUrl, name::kSchemaUrl);
  Message request;
  request.Child(in_request, std::move(resource));
  return request;
}

std::string_view ResultOf(OutcomeKind outcome) {
  switch (outcome) {
    case OutcomeKind::kSuccess:
      return "success";
    case OutcomeKind::kTimedOut:
    case OutcomeKind::kIdle:
      return "timeout";
    case OutcomeKind::kInterrupted:
    case OutcomeKind::kTerminated:
      return "cancellation";
    case OutcomeKind::kSkipped:
      return "skip";
    case OutcomeKind::kAgentFailed:
    case OutcomeKind::kLimit:
    case OutcomeKind::kRefused:
    case OutcomeKind::kUntrusted:
    case OutcomeKind::kBudget:
    case OutcomeKind::kFindings:
      return "failure";
    case OutcomeKind::kSandboxLost:
    case OutcomeKind::kGatewayLost:
    case OutcomeKind::kSetupFailed:
    case OutcomeKind::kCredentialRefused:
      return "error";
  }
  return "error";
}

std::string ProviderOf(std::string_view provider, std::string_view path) {
  using Row = std::pair<std::string_view, std::string_view>;
  // The values of gen_ai.provider.name.
  constexpr std::array<Row, 14> kHosts = {{{"anthropic.com", "anthropic"},
                                           {"openai.azure.com", "azure.ai.openai"},
                                           {"services.ai.azure.com", "azure.ai.inference"},
                                           {"openai.com", "openai"},
                                           {"amazonaws.com", "aws.bedrock"},
                                           {"generativelanguage.googleapis.com", "gcp.gemini"},
                                           {"aiplatform.googleapis.com", "gcp.vertex_ai"},
                                           {"mistral.ai", "mistral_ai"},
                                           {"groq.com", "groq"},
                                           {"deepseek.com", "deepseek"},
                                           {"x.ai", "x_ai"},
                                           {"cohere.com", "cohere"},
                                           {"perplexity.ai", "perplexity"},
                                           {"moonshot.ai", "moonshot_ai"}}};
  constexpr std::array<Row, 4> kPaths = {{{"/v1/messages", "anthropic"},
                                          {"/chat/completions", "openai"},
                                          {"/responses", "openai"},
                                          {"enerateContent", "gcp.gemini"}}};
  std::string_view host = provider.substr(std::min(provider.find("://"), provider.size()));
  host.remove_prefix(std::min<size_t>(3, host.size()));
  host = host.substr(0, host.find('/'));
  host = host.substr(0, host.find(':'));
  for (const auto& [ending, word] : kHosts) {
    const bool below = host.size() > ending.size() && host.ends_with(ending) &&
                       (host[host.size() - ending.size() - 1] == '.' ||
                        host[host.size() - ending.size() - 1] == '-');
    if (host == ending || below) return std::string(word);
  }
  const std::string whole = std::string(provider).append(path);
  for (const auto& [part, word] : kPaths) {
    if (whole.find(part) != std::string::npos) return std::string(word);
  }
  return std::string(host);
}

}  // namespace telemetry
