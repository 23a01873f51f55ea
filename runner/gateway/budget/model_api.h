// SPDX-License-Identifier: Apache-2.0
// Recognises which model API a request uses, and renders errors in that API's format. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/wire/http_head.h"
#include "gateway/budget/limits.h"

namespace gateway {

// The APIs whose answers say how many tokens were used.
enum class ModelApi {
  kNone,
  kAnthropic,        // POST .../v1/messages; Vertex's rawPredict.
  kOpenAi,           // POST .../chat/completions, /completions, /embeddings.
  kOpenAiResponses,  // POST .../responses, /responses/compact.
  kGemini,           // POST .../M:generateContent, :streamGenerateContent, in any collection.
  kBedrock,          // POST /model/M/invoke, /converse and their streams.
  // No answer says what was used, or not in a form that is read: work that is done and paid for
  // later (batches, fine-tuning), what is not counted in tokens (pictures, sound, video), other
  // APIs of known models.
  kUncountable,
  kSocket,  // Likewise: a WebSocket, on which any number of answers comes.
};

struct ModelCall {
  ModelApi api = ModelApi::kNone;
  std::string model;  // The model, if the path has it (Gemini, Vertex, Bedrock, Azure); else empty.
};

// Recognises a model call by method and canonical path, whatever the host: models are also reached
// through brokers. Ignores case and a slash at the end, since some of them do. `upgrades` is true
// if the request asks for a WebSocket.
ModelCall RecogniseModelCall(std::string_view method, std::string_view path, bool upgrades = false);

// Returns whether a request of that method and path to a server of models, not recognised as a
// call, could still be one: an API that this program does not know. Those that count tokens, keep
// files, or log what an agent did are known to be none.
bool MayUseModel(std::string_view method, std::string_view path);

// Returns whether a request of that method and path has a prompt as its body: a model call, or a
// request to count a prompt's tokens.
bool CarriesPrompt(std::string_view method, std::string_view path);

// The answer that the body of a request asks for.
struct PromptBody {
  // True for a JSON object in which every reader finds the same (not with "Model" beside "model").
  bool plain = false;
  std::string model;  // The top-level "model", or empty.
  // Further models that may answer, in place of that one or for a tool: "fallbacks", "models".
  std::vector<std::string> others;
  bool background = false;  // The answer comes later, by another request.
  // The most tokens of output that the request allows, in all the answers that it asks for
  // together.
  int64_t output_max = kOutputTokensUnsaid;
  // The most tokens of input that the length of the request does not show: those of pictures, and
  // of what it only refers to (an earlier answer, a stored prompt, a file, a document's pages).
  int64_t unseen = 0;
};
PromptBody ReadPromptBody(ModelApi api, std::string_view body);

// Returns the body of a request with `note` as the last thing that the user says. nullopt where
// that cannot be: Bedrock's requests are signed with their body, an answer was begun, or there is
// no conversation.
std::optional<std::string> WithNote(ModelApi api, std::string_view body, std::string_view note);

// Returns "claude-sonnet-4-5-20250929-v1" for "us.anthropic.claude-sonnet-4-5-20250929-v1:0" and
// similar names: without vendor and region. Borrowed from `model`.
std::string_view BareModelName(std::string_view model);
// Returns "claude-sonnet-4-5" for the same: without date and version, too.
std::string PlainModelName(std::string_view model);

// An error in the API's own format: what its clients show to people. `type` is one of theirs.
struct ApiError {
  int status = 403;
  std::string message;
  codec::HttpFields fields;  // Beside Content-Type and Content-Length.
  std::string code = {};     // In OpenAI's form; empty for that of a budget.
};
std::string RenderApiErrorBody(ModelApi api, const ApiError& error);

}  // namespace gateway
