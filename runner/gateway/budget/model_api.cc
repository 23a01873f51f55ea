// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/model_api.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/call/json_body.h"
#include "codec/data/json.h"
#include "codec/text/percent.h"

namespace gateway {
namespace {

using codec::Json;

// The segment behind "/NAME/" and, there, the verb behind ':' or '/'.
struct PathModel {
  std::string model;
  std::string_view verb;
};

// Google's verbs stand behind ':', whatever collection the model is in: "/models/M:verb",
// "/endpoints/7:verb". Behind a version alone ("/v1internal:verb"), the body names the model.
PathModel GoogleModel(std::string_view path) {
  const size_t colon = path.rfind(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view verb = path.substr(colon + 1);
  const std::string_view resource = path.substr(0, colon);
  constexpr std::string_view kModels = "/models/";
  if (size_t at = resource.rfind(kModels); at != std::string_view::npos) {
    return {std::string(resource.substr(at + kModels.size())), verb};
  }
  const size_t slash = resource.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return {"", verb};
  return {std::string(resource.substr(slash + 1)), verb};
}

// Returns the deployment that an Azure path names; it is the model that answers.
std::string DeploymentOf(std::string_view path) {
  for (std::string_view marker : {"/deployments/", "/engines/"}) {
    const size_t at = path.find(marker);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + marker.size());
    return std::string(rest.substr(0, rest.find('/')));
  }
  return "";
}

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
constexpr auto kUncounted = std::to_array<std::string_view>(
    {"/messages/batches", "/v1/batches", "/fine_tuning/jobs", ":batchGenerateContent",
     "/model-invocation-job", "/async-invoke", "/images/generations", "/images/edits",
     "/images/variations", "/audio/speech", "/audio/transcriptions", "/audio/translations",
     "/v1/videos", ":predict", ":predictLongRunning",
     // Their answers have other forms.
     "/v1/complete", "/fim/completions", "/agents/completions", "/v1/conversations",
     "/v1beta/interactions", "/threads/runs", "/realtime/calls", "/realtime/client_secrets",
     "/v2/chat", "/v2/embed", "/api/chat", "/api/generate", ":embedContent", ":batchEmbedContents",
     ":asyncBatchEmbedContent", ":generateAnswer", ":generateText", ":generateMessage",
     ":embedText", ":batchEmbedText", ":streamingPredict", ":serverStreamingPredict",
     ":directPredict", ":streamDirectPredict", ":directRawPredict", ":streamDirectRawPredict",
     ":streamingRawPredict", "/v1/ocr", "/v1/chat", "/api/embed",
     "/invoke-with-bidirectional-stream", "/retrieveAndGenerate", "/retrieveAndGenerateStream"});

// Google's APIs over gRPC: every method of these packages but those that run no model.
constexpr auto kGrpcPackages = std::to_array<std::string_view>(
    {"/google.ai.generativelanguage.", "/google.cloud.aiplatform."});

// Requests to the servers of models that use none: they count tokens, keep files, refuse texts, log
// what an agent did, renew its login, or end what was begun.
constexpr auto kFreeEnds =
    std::to_array<std::string_view>({"/count_tokens",  "/count-tokens",  "/count-tokens:rawPredict",
                                     ":countTokens",   ":computeTokens", "/responses/input_tokens",
                                     "/tokenize",      "/detokenize",    "/CountTokens",
                                     "/ComputeTokens", "/ListModels",    "/GetModel",
                                     "/api/show",      "/moderations",   "/files",
                                     "/uploads",       "/cancel",        "/v1/traces",
                                     "/v1/metrics",    "/v1/logs"});
constexpr auto kFreeParts =
    std::to_array<std::string_view>({"/upload/", "/uploads/", "/api/event_logging/", "/api/eval/",
                                     "/api/claude_code/", "/api/claude_cli/", "/api/oauth/"});

// OpenAI's assistants and evaluations: ".../threads/THREAD/runs".
bool RunsWithin(std::string_view path, std::string_view collection) {
  size_t at = path.rfind(collection);
  if (at == std::string_view::npos) return false;
  std::string_view rest = path.substr(at + collection.size());
  size_t slash = rest.find('/');
  return slash != std::string_view::npos && codec::EqualIgnoringCase(rest.substr(slash), "/runs");
}

bool EndsWith(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         codec::EqualIgnoringCase(path.substr(path.size() - end.size()), end);
}

bool IsFree(std::string_view path) {
  auto ends = [path](std::string_view end) { return EndsWith(path, end); };
  auto has = [path](std::string_view part) { return path.find(part) != std::string_view::npos; };
  return std::any_of(kFreeEnds.begin(), kFreeEnds.end(), ends) ||
         std::any_of(kFreeParts.begin(), kFreeParts.end(), has);
}

bool IsUncounted(std::string_view path) {
  auto ends = [path](std::string_view end) { return EndsWith(path, end); };
  auto begins = [path](std::string_view package) { return path.starts_with(package); };
  return std::any_of(kUncounted.begin(), kUncounted.end(), ends) ||
         (std::any_of(kGrpcPackages.begin(), kGrpcPackages.end(), begins) && !IsFree(path)) ||
         RunsWithin(path, "/threads/") || RunsWithin(path, "/evals/") ||
         path.find("/agentAliases/") != std::string_view::npos;  // Bedrock's agents.
}

// Returns a path as a server reads it, which may ignore slashes at the end.
std::string Plain(std::string_view path) {
  std::string plain = codec::PercentDecode(path);
  while (plain.ends_with('/')) plain.pop_back();
  return plain;
}

// Recognises the calls whose answers are counted.
ModelCall RecogniseCounted(std::string_view path) {
  auto ends = [path](std::string_view end) { return EndsWith(path, end); };
  if (ends("/v1/messages")) return {ModelApi::kAnthropic, ""};
  std::string deployment = DeploymentOf(path);
  if (ends("/chat/completions") || ends("/v1/completions") || ends("/embeddings") ||
      (!deployment.empty() && ends("/completions"))) {
    return {ModelApi::kOpenAi, std::move(deployment)};
  }
  if (ends("/responses") || ends("/responses/compact")) {
    return {ModelApi::kOpenAiResponses, std::move(deployment)};
  }
  PathModel google = GoogleModel(path);
  auto asks = [&google](std::string_view verb) {
    return codec::EqualIgnoringCase(google.verb, verb);
  };
  if (asks("generateContent") || asks("streamGenerateContent")) {
    return {ModelApi::kGemini, std::move(google.model)};
  }
  const bool counts = google.model == "count-tokens";
  if (!counts && (asks("rawPredict") || asks("streamRawPredict"))) {
    return {ModelApi::kAnthropic, std::move(google.model)};
  }
  PathModel bedrock = ModelBehind(path, "/model/", '/');
  constexpr std::array<std::string_view, 4> kVerbs = {"invoke", "invoke-with-response-stream",
                                                      "converse", "converse-stream"};
  if (std::find(kVerbs.begin(), kVerbs.end(), bedrock.verb) != kVerbs.end()) {
    return {ModelApi::kBedrock, std::move(bedrock.model)};
  }
  return {};
}

// Returns the largest of these members of `place`, each a bound on one answer; 0 without any.
int64_t BoundIn(const Json* place, std::initializer_list<std::string_view> names) {
  int64_t bound = 0;
  for (std::string_view name : names) {
    if (place == nullptr || place->Find(name) == nullptr) continue;
    const int64_t said = place->IntegerAt(name);
    bound = std::max(bound, said > 0 ? std::min(said, kTokensOfAnswerMax) : kOutputTokensUnsaid);
  }
  return bound;
}

// How many answers a member of `place` asks for.
int64_t ChoicesIn(const Json* place, std::string_view name) {
  const Json* choices = place != nullptr ? place->Find(name) : nullptr;
  if (choices == nullptr || choices->is_null()) return 1;
  return std::clamp<int64_t>(choices->integer().value_or(kChoicesMax), 1, kChoicesMax);
}

bool Has(const Json& body, std::string_view name) {
  const Json* member = body.Find(name);
  return member != nullptr && !member->is_null();
}

// OpenAI's older completions answer each of a list of prompts; one of numbers is one prompt.
int64_t PromptsOf(const Json& body) {
  const Json* prompt = body.Find("prompt");
  const Json::Array* list = prompt != nullptr ? prompt->array() : nullptr;
  if (list == nullptr || list->empty() || list->front().integer().has_value()) return 1;
  return static_cast<int64_t>(list->size());
}

// Returns the most tokens of input that stand for this part of a question without being its text.
int64_t UnseenIn(const Json& value) {
  constexpr auto kReferences = std::to_array<std::string_view>(
      {"previous_response_id", "conversation", "cachedContent", "cached_content", "file_id",
       "fileId", "file_data", "fileData", "fileUri", "file_uri", "s3Location"});
  constexpr auto kInline = std::to_array<std::string_view>({"inlineData", "inline_data"});
  int64_t unseen = 0;
  if (const Json::Array* items = value.array()) {
    for (const Json& item : *items) unseen += UnseenIn(item);
  }
  if (value.object() == nullptr) return std::min(unseen, kInputTokensUnseen);
  const std::string type = value.StringAt("type");
  if (type == "document" || type == "input_file" || type == "file") return kInputTokensUnseen;
  if (type == "image" || type == "image_url" || type == "input_image") {
    unseen += kInputTokensOfPicture;
  }
  for (const auto& [name, inner] : *value.object()) {
    if (inner.is_null() || name == "tools" || name == "toolConfig") continue;  // Schemas.
    if (std::ranges::find(kReferences, name) != kReferences.end()) return kInputTokensUnseen;
    const bool media = std::ranges::find(kInline, name) != kInline.end();
    // Converse has {"image": {"format": …, "source": …}}, and documents likewise.
    const bool picture = name == "image" && inner.object() != nullptr;
    if (name == "document" && inner.object() != nullptr) return kInputTokensUnseen;
    if (media && !inner.StringAt("mimeType").starts_with("image/") &&
        !inner.StringAt("mime_type").starts_with("image/")) {
      return kInputTokensUnseen;
    }
    unseen += media || picture ? kInputTokensOfPicture : UnseenIn(inner);
  }
  return std::min(unseen, kInputTokensUnseen);
}

// Only the members that the API itself reads: another would bound nothing.
int64_t OutputMax(ModelApi api, const Json& body) {
  int64_t bound = 0;
  int64_t choices = 1;
  switch (api) {
    case ModelApi::kAnthropic:
    case ModelApi::kBedrock:
      bound = BoundIn(&body, {"max_tokens"});
      if (api == ModelApi::kBedrock) {
        bound = std::max(bound, BoundIn(body.Find("inferenceConfig"), {"maxTokens"}));
      }
      // It may be more than max_tokens where the model thinks between its uses of tools.
      for (const Json* place : {&body, body.Find("additionalModelRequestFields")}) {
        const Json* thinking = place != nullptr ? place->Find("thinking") : nullptr;
        if (bound > 0) bound = std::max(bound, BoundIn(thinking, {"budget_tokens"}));
      }
      break;
    case ModelApi::kOpenAi:
      // Embeddings have no output.
      if (Has(body, "input") && !Has(body, "messages") && !Has(body, "prompt")) return 0;
      bound = BoundIn(&body, {"max_tokens", "max_completion_tokens"});
      choices = std::max(ChoicesIn(&body, "n"), ChoicesIn(&body, "best_of")) * PromptsOf(body);
      break;
    case ModelApi::kOpenAiResponses:
      bound = BoundIn(&body, {"max_output_tokens"});
      break;
    case ModelApi::kGemini: {
      const Json* wrapped = body.Find("request");
      const Json& request = wrapped != nullptr ? *wrapped : body;
      for (const char* name : {"generationConfig", "generation_config"}) {
        const Json* config = request.Find(name);
        bound = std::max(bound, BoundIn(config, {"maxOutputTokens", "max_output_tokens"}));
        for (const char* count : {"candidateCount", "candidate_count"}) {
          choices = std::max(choices, ChoicesIn(config, count));
        }
      }
      break;
    }
    default:
      break;
  }
  return (bound > 0 ? bound : kOutputTokensUnsaid) * choices;
}

std::vector<std::string> FurtherModels(const Json& body) {
  std::vector<std::string> models;
  auto take = [&](const Json& one) {
    std::string name = one.string() != nullptr ? *one.string() : one.StringAt("model");
    if (!name.empty()) models.push_back(std::move(name));
  };
  for (const char* name : {"fallbacks", "models", "tools"}) {
    const Json* list = body.Find(name);
    if (list == nullptr) continue;
    if (list->array() == nullptr) {
      take(*list);
    } else {
      std::ranges::for_each(*list->array(), take);
    }
  }
  return models;
}

}  // namespace

ModelCall RecogniseModelCall(std::string_view method, std::string_view written, bool upgrades) {
  const std::string path = Plain(written);
  auto ends = [&path](std::string_view end) { return EndsWith(path, end); };
  if (upgrades && std::any_of(kSockets.begin(), kSockets.end(), ends)) {
    return {ModelApi::kSocket, ""};
  }
  if (!codec::EqualIgnoringCase(method, "POST")) return {};
  if (IsUncounted(path)) return {ModelApi::kUncountable, ""};
  return RecogniseCounted(path);
}

bool MayUseModel(std::string_view method, std::string_view path) {
  return codec::EqualIgnoringCase(method, "POST") && !IsFree(Plain(path));
}

bool CarriesPrompt(std::string_view method, std::string_view path) {
  if (RecogniseModelCall(method, path).api != ModelApi::kNone) return true;
  return codec::EqualIgnoringCase(method, "POST") &&
         (EndsWith(path, "/messages/count_tokens") || EndsWith(path, ":countTokens"));
}

PromptBody ReadPromptBody(ModelApi api, std::string_view body) {
  Result<Json> json = codec::ParseJson(body, {.bytes_max = body.size() + 1, .depth_max = 128});
  constexpr auto kNames = std::to_array<std::string_view>(
      {"model", "background", "n", "best_of", "max_tokens", "max_completion_tokens",
       "max_output_tokens", "previous_response_id", "conversation", "fallbacks", "models",
       "tools"});
  PromptBody read;
  read.plain = json.ok() && json.value().object() != nullptr &&
               codec::CheckMemberNames(json.value(), kNames).ok();
  if (!read.plain) return read;
  read.model = json.value().StringAt("model");
  read.others = FurtherModels(json.value());
  const Json* background = json.value().Find("background");
  read.background =
      background != nullptr && !background->is_null() && background->boolean() != false;
  read.output_max = OutputMax(api, json.value());
  const Json* prompt = json.value().Find("prompt");
  const bool stored = prompt != nullptr && prompt->object() != nullptr;
  read.unseen = stored ? kInputTokensUnseen : UnseenIn(json.value());
  return read;
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
      inner.Set("type", limited              ? "rate_limit_exceeded"
                        : error.code.empty() ? "insufficient_quota"
                                             : "invalid_request_error");
      inner.Set("param", Json());
      inner.Set("code", limited              ? "rate_limit_exceeded"
                        : error.code.empty() ? "budget_exceeded"
                                             : error.code);
      outer.Set("error", std::move(inner));
      break;
  }
  return codec::RenderJsonLine(outer);
}

}  // namespace gateway
