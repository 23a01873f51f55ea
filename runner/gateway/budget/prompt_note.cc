// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "codec/data/json.h"
#include "gateway/budget/model_api.h"

namespace gateway {
namespace {

using codec::Json;

// Json values are built, not changed.
Json Replaced(const Json& object, std::string_view name, const Json& value) {
  Json copy = Json::EmptyObject();
  for (const auto& [known, inner] : *object.object())
    copy.Set(known, known == name ? value : inner);
  return copy;
}

Json LastReplaced(const Json::Array& list, Json last) {
  Json copy = Json::EmptyArray();
  for (size_t i = 0; i + 1 < list.size(); ++i) copy.Push(list[i]);
  return copy.Push(std::move(last));
}

Json TextPart(std::string_view type, std::string_view text) {
  Json part;
  if (!type.empty()) part.Set("type", type);
  return part.Set("text", text);
}

// Adds the note to `content`, which is text, or parts of which those of text have this type.
std::optional<Json> ContentWith(const Json* content, std::string_view type, std::string_view note) {
  if (content == nullptr) return std::nullopt;
  if (content->string() != nullptr) return Json(*content->string() + "\n\n" + std::string(note));
  if (content->array() == nullptr) return std::nullopt;
  return Json(*content).Push(TextPart(type, note));
}

// Adds it to the last entry of the list `name` of `body`, as to its member `parts`.
std::optional<Json> LastWith(const Json& body, std::string_view name, std::string_view parts,
                             std::string_view type, std::string_view note) {
  const Json* list = body.Find(name);
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return std::nullopt;
  const Json& last = list->array()->back();
  const std::string role = last.StringAt("role");
  if (last.object() == nullptr || role == "assistant" || role == "model") return std::nullopt;
  const std::optional<Json> content = ContentWith(last.Find(parts), type, note);
  if (!content) return std::nullopt;
  return Replaced(body, name, LastReplaced(*list->array(), Replaced(last, parts, *content)));
}

// Adds a message of its own behind the others.
std::optional<Json> MessageWith(const Json& body, std::string_view name, Json content) {
  const Json* list = body.Find(name);
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return std::nullopt;
  if (list->array()->back().StringAt("role") == "assistant") return std::nullopt;
  Json message;
  message.Set("role", "user").Set("content", std::move(content));
  return Replaced(body, name, Json(*list).Push(std::move(message)));
}

std::optional<Json> JsonWithNote(ModelApi api, const Json& body, std::string_view note) {
  switch (api) {
    case ModelApi::kAnthropic:
      return LastWith(body, "messages", "content", "text", note);
    case ModelApi::kOpenAi:
      return MessageWith(body, "messages", note);
    case ModelApi::kOpenAiResponses: {
      const Json* input = body.Find("input");
      if (input == nullptr || input->string() == nullptr) {
        return MessageWith(body, "input", Json().Push(TextPart("input_text", note)));
      }
      return Replaced(body, "input", *ContentWith(input, "", note));
    }
    case ModelApi::kGemini: {
      const Json* wrapped = body.Find("request");
      if (wrapped == nullptr) return LastWith(body, "contents", "parts", "", note);
      const std::optional<Json> inner = LastWith(*wrapped, "contents", "parts", "", note);
      if (!inner) return std::nullopt;
      return Replaced(body, "request", *inner);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> WithNote(ModelApi api, std::string_view body, std::string_view note) {
  Result<Json> json = codec::ParseJson(body, {.bytes_max = body.size() + 1, .depth_max = 128});
  if (!json.ok() || json.value().object() == nullptr) return std::nullopt;
  const std::optional<Json> noted = JsonWithNote(api, json.value(), note);
  if (!noted) return std::nullopt;
  return codec::RenderJsonLine(*noted);
}

}  // namespace gateway
