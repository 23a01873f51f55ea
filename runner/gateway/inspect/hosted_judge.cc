// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/hosted_judge.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codec/call/json_body.h"
#include "codec/text/percent.h"
#include "gateway/budget/budget.h"
#include "policy/decide/hosted_decide.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

using policy::HostedUse;
using policy::ModelFamily;

// How a path ends, and how its bodies are read.
struct Api {
  std::string_view end;
  ModelFamily family;
};

// Beside those of RecogniseModelCall.
constexpr auto kFurtherApis = std::to_array<Api>({
    {"/messages/batches", ModelFamily::kAnthropic},
    {"/messages/count_tokens", ModelFamily::kAnthropic},
    {"/count-tokens:rawPredict", ModelFamily::kAnthropic},
    {"/count-tokens", ModelFamily::kAnthropic},
    {"/v1/complete", ModelFamily::kAnthropic},
    {"/responses/input_tokens", ModelFamily::kResponses},
    {":countTokens", ModelFamily::kGemini},
    {":batchGenerateContent", ModelFamily::kGemini},
    {"/cachedContents", ModelFamily::kGemini},
    {"/v1beta/interactions", ModelFamily::kGemini},
    {"/v1/chat", ModelFamily::kChat},
    {"/v2/chat", ModelFamily::kChat},
    {"/api/chat", ModelFamily::kChat},
    {"/api/generate", ModelFamily::kChat},
});

// Requests that set off work which the request does not show.
constexpr auto kUnreadEnds = std::to_array<std::string_view>(
    {"/v1/batches", "/model-invocation-job", "/invoke-with-bidirectional-stream"});
constexpr auto kGrpcPackages = std::to_array<std::string_view>(
    {"/google.ai.generativelanguage.", "/google.cloud.aiplatform."});

// Collections of agents and of what belongs to them.
constexpr auto kAgentCollections = std::to_array<std::string_view>({"/v1/agents",
                                                                    "/v1/environments",
                                                                    "/v1/sessions",
                                                                    "/v1/deployments",
                                                                    "/v1/dreams",
                                                                    "/v1/memory_stores",
                                                                    "/v1/vaults",
                                                                    "/v1/skills",
                                                                    "/v1/tunnels",
                                                                    "/v1/assistants",
                                                                    "/v1/threads",
                                                                    "/v1/containers",
                                                                    "/v1/vector_stores",
                                                                    "/v1/conversations",
                                                                    "/v1/chatkit",
                                                                    "/v1/realtime",
                                                                    "/v1/evals",
                                                                    "/agentAliases",
                                                                    "/retrieveAndGenerate",
                                                                    "/retrieveAndGenerateStream"});

// The status that makes clients ask over HTTP instead.
constexpr int kUpgradeRefused = 426;
constexpr int kRefused = 403;

bool EndsWith(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         codec::EqualIgnoringCase(path.substr(path.size() - end.size()), end);
}

// Returns whether `path` has `collection` as whole segments.
bool IsIn(std::string_view path, std::string_view collection) {
  for (size_t at = path.find(collection); at != std::string_view::npos;
       at = path.find(collection, at + 1)) {
    const size_t end = at + collection.size();
    if (end == path.size() || path[end] == '/') return true;
  }
  return false;
}

std::optional<ModelFamily> FamilyOf(ModelApi api) {
  switch (api) {
    case ModelApi::kAnthropic:
    case ModelApi::kBedrock:
      return ModelFamily::kAnthropic;
    case ModelApi::kOpenAi:
      return ModelFamily::kChat;
    case ModelApi::kOpenAiResponses:
      return ModelFamily::kResponses;
    case ModelApi::kGemini:
      return ModelFamily::kGemini;
    default:
      return std::nullopt;
  }
}

ModelApi ApiOf(ModelFamily family) {
  switch (family) {
    case ModelFamily::kAnthropic:
      return ModelApi::kAnthropic;
    case ModelFamily::kResponses:
      return ModelApi::kOpenAiResponses;
    case ModelFamily::kGemini:
      return ModelApi::kGemini;
    default:
      return ModelApi::kOpenAi;
  }
}

// Returns whether requests of this method set off no work of the provider.
bool StartsNoWork(std::string_view method) {
  return std::ranges::any_of(std::to_array<std::string_view>({"GET", "HEAD", "OPTIONS", "DELETE"}),
                             [&](auto one) { return codec::EqualIgnoringCase(one, method); });
}

OutgoingRefusal RefusalOf(const HostedQuestion& question, const std::string& reason) {
  const int status = question.api == ModelApi::kSocket ? kUpgradeRefused : kRefused;
  OutgoingRefusal refusal;
  refusal.answer = {status,
                    {{"Content-Type", "application/json"}},
                    RenderApiErrorBody(question.api, {status, reason, {}, "policy_denied"})};
  refusal.engine = record::Engine::kHostedTools;
  refusal.reason = reason;
  return refusal;
}

std::string MessageOf(const std::vector<policy::Operation>& operations) {
  std::string text;
  for (const policy::Operation& one : operations) {
    text += (text.empty() ? " " : ", ") + policy::OperationText(one);
  }
  return text;
}

}  // namespace

std::optional<HostedQuestion> RecogniseHosted(std::string_view method, std::string_view written,
                                              bool has_body, bool upgrades) {
  std::string path = codec::PercentDecode(written);
  while (path.ends_with('/')) path.pop_back();
  HostedQuestion question;
  // The request's own method does not count: some servers take the method from a field.
  ModelCall call = RecogniseModelCall("POST", path, upgrades);
  question.api = call.api;
  question.place.model = std::move(call.model);
  if (call.api == ModelApi::kSocket) {
    question.kind = policy::kUnread;
    return question;
  }
  const auto* known =
      std::ranges::find_if(kFurtherApis, [&](const Api& api) { return EndsWith(path, api.end); });
  std::optional<ModelFamily> family = FamilyOf(call.api);
  if (!family && known != kFurtherApis.end()) {
    family = known->family;
    question.api = ApiOf(*family);
  }
  if (family) {
    question.place.family = *family;
    return has_body ? std::optional(std::move(question)) : std::nullopt;
  }
  if (StartsNoWork(method) && !has_body) return std::nullopt;
  const bool agents = std::ranges::any_of(
      kAgentCollections, [&](std::string_view collection) { return IsIn(path, collection); });
  const bool unread =
      std::ranges::any_of(kUnreadEnds, [&](auto end) { return EndsWith(path, end); }) ||
      std::ranges::any_of(kGrpcPackages, [&](auto package) { return path.starts_with(package); });
  if (!agents && !unread) return std::nullopt;
  question.kind = agents ? policy::kHostedAgents : policy::kUnread;
  return question;
}

std::vector<HostedUse> ReadHostedUses(const HostedQuestion& question,
                                      const codec::HttpFields& fields, std::string_view body) {
  auto unread = [](std::string why) {
    return std::vector<HostedUse>{{std::string(policy::kUnread), std::move(why)}};
  };
  Status readable = codec::CheckJsonBodyFields(fields);
  if (!readable.ok()) return unread(readable.error().what);
  Result<codec::Json> json =
      codec::ParseJson(body, {.bytes_max = body.size() + 1, .depth_max = 128});
  if (!json.ok()) return unread(json.error().what);
  if (json.value().object() == nullptr) return unread("the body is not a JSON object");
  return FindHostedUses(question.place, json.value());
}

std::optional<RequestVerdict> JudgeHosted(const RequestContext& context,
                                          const HostedQuestion& question, RequestVerdict& allowed) {
  std::vector<HostedUse> uses;
  if (question.kind.empty()) {
    uses = ReadHostedUses(question, allowed.request.fields, allowed.request.body);
  } else {
    const bool socket = question.api == ModelApi::kSocket;
    uses = {{std::string(question.kind), socket ? "a WebSocket" : allowed.event.path}};
  }
  policy::HostedVerdict verdict =
      policy::DecideHostedUses(context.lease.in_force().hosted_tools, uses);
  if (verdict.operations.empty()) return std::nullopt;
  record::Event& event = allowed.event;
  event.protocol = policy::kHostedProtocol;
  event.operations = std::move(verdict.operations);
  if (verdict.allowed) {
    event.message += MessageOf(event.operations);
    return std::nullopt;
  }
  const std::string& narrowed_by = context.lease.in_force().narrowed_by;
  if (!narrowed_by.empty()) verdict.reason.append(policy::kNarrowedReason).append(narrowed_by);
  return RefuseAllowed(allowed, RefusalOf(question, verdict.reason));
}

std::optional<HostedQuestion> HostedApis::Find(const RequestContext& context,
                                               const RequestVerdict& passes, bool has_body) {
  std::optional<HostedQuestion> question =
      RecogniseHosted(passes.request.method, passes.path, has_body, passes.websocket);
  if (!question || !IsModelServer(context.authority, passes.path)) return std::nullopt;
  question->place.host = context.authority.host;
  return question;
}

bool HostedApis::IsModelServer(const Authority& server, std::string_view path) {
  const bool of_agent = std::ranges::any_of(models_, [&](const Authority& model) {
    return model.port == server.port && policy::HostMatches(model.host, server.host);
  });
  if (of_agent) return true;
  if (!servers_) servers_ = ask_ ? ask_() : std::vector<ModelServer>();
  return std::ranges::any_of(
      *servers_, [&](const ModelServer& known) { return IsServedBy(known, server, path); });
}

}  // namespace gateway
