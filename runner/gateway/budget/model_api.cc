// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/model_api.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/call/json_body.h"
#include "codec/data/json.h"

namespace gateway {
namespace {

using codec::Json;

// The segment behind "/NAME/" and, there, the verb behind ':' or '/'.
struct PathModel {
  std::string model;
  std::string_view verb;
};

PathModel ModelBehind(std::string_view path, std::string_view marker, char separator) {
  size_t at = path.rfind(marker);
  if (at == std::string_view::npos) return {};
  std::string_view rest = path.substr(at + marker.size());
  size_t end = rest.rfind(separator);
  if (end == std::string_view::npos) return {};
  return {std::string(rest.substr(0, end)), rest.substr(end + 1)};
}

// "-20250929", "-001", "-v1", "-latest" at the end. "claude-opus-4-10" ends with no such part.
bool IsVersionPart(std::string_view part) {
  if (part == "latest" || part == "preview") return true;
  if (part.size() >= 2 && part.front() == 'v' && ascii::IsNumber(part.substr(1))) return true;
  return ascii::IsNumber(part) && part.size() >= 3;
}

// Returns whether `text` ends like `form`, in which '#' is any digit.
bool EndsInForm(std::string_view text, std::string_view form) {
  if (text.size() <= form.size()) return false;
  text.remove_prefix(text.size() - form.size());
  return std::equal(text.begin(), text.end(), form.begin(),
                    [](char c, char f) { return f == '#' ? ascii::IsDigit(c) : c == f; });
}

// Returns the size of the date or version at the end of a name, with its dash; 0 if there is
// neither.
size_t VersionSize(std::string_view name) {
  // "gpt-4o-2024-08-06", "gemini-2.5-flash-preview-09-2025", "gemini-2.5-pro-preview-06-05".
  constexpr std::string_view kPreview = "-preview-##-##";
  if (EndsInForm(name, kPreview)) return kPreview.size();
  for (std::string_view date : {"-####-##-##", "-##-####"}) {
    if (EndsInForm(name, date)) return date.size();
  }
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return 0;
  return IsVersionPart(name.substr(dash + 1)) ? name.size() - dash : 0;
}

// OpenAI's responses and realtime, Gemini's live conversation.
constexpr std::array<std::string_view, 4> kSockets = {
    "/responses", "/realtime", "BidiGenerateContent", "BidiGenerateContentConstrained"};
constexpr std::array<std::string_view, 30> kUncounted = {
    "/messages/batches", "/v1/batches", "/fine_tuning/jobs", ":batchGenerateContent",
    "/model-invocation-job", "/async-invoke", "/images/generations", "/images/edits",
    "/images/variations", "/audio/speech", "/audio/transcriptions", "/audio/translations",
    "/v1/videos", ":predict", ":predictLongRunning",
    // Their answers have other forms.
    "/v1/complete", "/fim/completions", "/agents/completions", "/v1/conversations",
    "/v1beta/interactions", "/threads/runs", "/realtime/calls", "/realtime/client_secrets",
    "/v2/chat", "/v2/embed", "/api/chat", "/api/generate", ":embedContent", ":batchEmbedContents",
    ":asyncBatchEmbedContent"};

// OpenAI's assistants: ".../threads/THREAD/runs".
bool RunsThread(std::string_view path) {
  constexpr std::string_view kThreads = "/threads/";
  size_t at = path.rfind(kThreads);
  if (at == std::string_view::npos) return false;
  std::string_view rest = path.substr(at + kThreads.size());
  size_t slash = rest.find('/');
  return slash != std::string_view::npos && codec::EqualIgnoringCase(rest.substr(slash), "/runs");
}

bool EndsWith(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         codec::EqualIgnoringCase(path.substr(path.size() - end.size()), end);
}

}  // namespace

ModelCall RecogniseModelCall(std::string_view method, std::string_view path, bool upgrades) {
  if (path.ends_with('/')) path.remove_suffix(1);
  auto ends = [path](std::string_view end) { return EndsWith(path, end); };
  if (upgrades) {
    const bool socket = std::any_of(kSockets.begin(), kSockets.end(), ends);
    return {socket ? ModelApi::kSocket : ModelApi::kNone, ""};
  }
  if (!codec::EqualIgnoringCase(method, "POST")) return {};
  bool uncounted = std::any_of(kUncounted.begin(), kUncounted.end(), ends) || RunsThread(path);
  if (uncounted) return {ModelApi::kUncountable, ""};
  if (ends("/v1/messages")) return {ModelApi::kAnthropic, ""};
  if (ends("/chat/completions") || ends("/v1/completions") || ends("/embeddings")) {
    return {ModelApi::kOpenAi, ""};
  }
  if (ends("/responses")) return {ModelApi::kOpenAiResponses, ""};
  PathModel google = ModelBehind(path, "/models/", ':');
  if (google.verb == "generateContent" || google.verb == "streamGenerateContent") {
    return {ModelApi::kGemini, google.model};
  }
  if (google.verb == "rawPredict" || google.verb == "streamRawPredict") {
    return {ModelApi::kAnthropic, google.model};
  }
  PathModel bedrock = ModelBehind(path, "/model/", '/');
  constexpr std::array<std::string_view, 4> kVerbs = {"invoke", "invoke-with-response-stream",
                                                      "converse", "converse-stream"};
  if (std::find(kVerbs.begin(), kVerbs.end(), bedrock.verb) != kVerbs.end()) {
    return {ModelApi::kBedrock, bedrock.model};
  }
  return {};
}

bool CarriesPrompt(std::string_view method, std::string_view path) {
  if (RecogniseModelCall(method, path).api != ModelApi::kNone) return true;
  return codec::EqualIgnoringCase(method, "POST") &&
         (EndsWith(path, "/messages/count_tokens") || EndsWith(path, ":countTokens"));
}

std::string ModelOfBody(std::string_view body) {
  Result<Json> json = codec::ParseJson(body, {.bytes_max = body.size() + 1, .depth_max = 128});
  constexpr std::array<std::string_view, 1> kName = {"model"};
  bool plain = json.ok() && json.value().object() != nullptr &&
               codec::CheckMemberNames(json.value(), kName).ok();
  return plain ? json.value().StringAt("model") : "";
}

std::string_view BareModelName(std::string_view model) {
  // "publishers/anthropic/models/x", "arn:aws:bedrock:...:inference-profile/x".
  if (size_t slash = model.rfind('/'); slash != std::string_view::npos) {
    model.remove_prefix(slash + 1);
  }
  // "us.anthropic.x"; ":0", "%3A0", "@20250929" and Claude Code's "[1m]" behind it.
  model = model.substr(0, model.find_first_of(":@["));
  model = model.substr(0, model.find("%3A"));
  for (std::string_view vendor : {"anthropic.", "openai.", "amazon.", "meta.", "mistral."}) {
    if (size_t at = model.find(vendor); at != std::string_view::npos) {
      model.remove_prefix(at + vendor.size());
      break;
    }
  }
  return model;
}

std::string PlainModelName(std::string_view model) {
  model = BareModelName(model);
  for (size_t size = VersionSize(model); size > 0; size = VersionSize(model)) {
    model.remove_suffix(size);
  }
  return std::string(model);
}

std::string RenderApiErrorBody(ModelApi api, const ApiError& error) {
  bool limited = error.status == 429;
  Json inner;
  Json outer;
  switch (api) {
    case ModelApi::kAnthropic:
      inner.Set("type", limited ? "rate_limit_error" : "permission_error");
      inner.Set("message", error.message);
      outer.Set("type", "error");
      outer.Set("error", std::move(inner));
      break;
    case ModelApi::kGemini:
      inner.Set("code", error.status);
      inner.Set("message", error.message);
      inner.Set("status", limited ? "RESOURCE_EXHAUSTED" : "PERMISSION_DENIED");
      outer.Set("error", std::move(inner));
      break;
    case ModelApi::kBedrock:
      outer.Set("message", error.message);
      break;
    default:
      inner.Set("message", error.message);
      inner.Set("type", limited ? "rate_limit_exceeded" : "insufficient_quota");
      inner.Set("param", Json());
      inner.Set("code", limited ? "rate_limit_exceeded" : "budget_exceeded");
      outer.Set("error", std::move(inner));
      break;
  }
  return codec::RenderJsonLine(outer);
}

}  // namespace gateway
