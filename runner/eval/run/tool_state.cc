// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "codec/data/yaml.h"
#include "eval/run/tool_server.h"
#include "eval/suite/yaml_value.h"

namespace eval {
namespace {

using codec::Json;

std::string TextOf(const Json& value) {
  return value.string() != nullptr ? *value.string() : codec::RenderJsonLine(value);
}

// "{name}" in `text` becomes that argument.
std::string Fill(std::string_view text, const Json& arguments) {
  std::string out;
  while (!text.empty()) {
    size_t brace = text.find('{');
    out += text.substr(0, brace);
    if (brace == std::string_view::npos) break;
    size_t end = text.find('}', brace);
    const Json* argument = nullptr;
    if (end != std::string_view::npos) {
      argument = arguments.Find(text.substr(brace + 1, end - brace - 1));
    }
    if (argument == nullptr) {
      out += '{';
      text.remove_prefix(brace + 1);
      continue;
    }
    out += TextOf(*argument);
    text.remove_prefix(end + 1);
  }
  return out;
}

Json FillTree(const Json& value, const Json& arguments) {
  if (const std::string* text = value.string()) {
    if (text->size() > 2 && text->front() == '{' && text->back() == '}') {
      const Json* argument = arguments.Find(std::string_view(*text).substr(1, text->size() - 2));
      if (argument != nullptr) return *argument;  // It keeps its type.
    }
    return Fill(*text, arguments);
  }
  if (const Json::Array* array = value.array()) {
    Json list = Json::EmptyArray();
    for (const Json& one : *array) list.Push(FillTree(one, arguments));
    return list;
  }
  if (const Json::Object* object = value.object()) {
    Json out = Json::EmptyObject();
    for (const auto& [name, one] : *object) out.Set(name, FillTree(one, arguments));
    return out;
  }
  return value;
}

// The path of a field with its arguments: none of them can add a step.
std::vector<std::string> StepsOf(std::string_view field, const Json& arguments) {
  std::vector<std::string> steps;
  for (;;) {
    size_t dot = field.find('.');
    steps.push_back(Fill(field.substr(0, dot), arguments));
    if (dot == std::string_view::npos) return steps;
    field.remove_prefix(dot + 1);
  }
}

std::optional<size_t> IndexOf(const std::string& step) {
  size_t index = 0;
  auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  return index;
}

const Json* At(const Json& tree, const std::vector<std::string>& steps) {
  const Json* here = &tree;
  for (const std::string& step : steps) {
    const Json::Array* array = here->array();
    std::optional<size_t> index = array != nullptr ? IndexOf(step) : std::nullopt;
    here = index && *index < array->size() ? &(*array)[*index] : here->Find(step);
    if (here == nullptr) return nullptr;
  }
  return here;
}

// Sets that member of an object, or of null, which becomes one. Returns false for anything else.
bool Put(Json* tree, const std::string& name, Json value) {
  if (tree->object() == nullptr && !tree->is_null()) return false;
  if (const Json* found = tree->Find(name)) {
    *const_cast<Json*>(found) = std::move(value);
  } else {
    tree->Set(name, std::move(value));
  }
  return true;
}

Json TextResult(const std::string& text, bool failed) {
  Json content = Json::EmptyArray();
  content.Push(Json().Set("type", "text").Set("text", text));
  Json result;
  result.Set("content", std::move(content)).Set("isError", failed);
  return result;
}

Json Reply(const Json& id, std::string_view name, Json value) {
  Json reply;
  reply.Set("jsonrpc", "2.0").Set("id", id).Set(std::string(name), std::move(value));
  return reply;
}

Json Wrong(int code, std::string_view message) {
  return Json().Set("code", code).Set("message", message);
}

}  // namespace

size_t WeightOf(const Json& value) {
  constexpr size_t kValueBytes = 100;
  size_t weight = kValueBytes;
  if (const std::string* text = value.string()) weight += text->size();
  if (const Json::Array* array = value.array()) {
    for (const Json& one : *array) weight += WeightOf(one);
  }
  if (const Json::Object* object = value.object()) {
    for (const auto& [name, one] : *object) weight += name.size() + WeightOf(one);
  }
  return weight;
}

Json ToolState::List() const {
  Json tools = Json::EmptyArray();
  for (const Tool& tool : tools_) {
    Json properties = Json::EmptyObject();
    std::vector<std::string> required;
    for (const auto& [name, description] : tool.arguments) {
      properties.Set(name, Json().Set("type", "string").Set("description", description));
      required.push_back(name);
    }
    Json schema;
    schema.Set("type", "object").Set("properties", std::move(properties));
    schema.Set("required", Json::FromStrings(required));
    tools.Push(Json()
                   .Set("name", tool.name)
                   .Set("description", tool.description)
                   .Set("inputSchema", std::move(schema)));
  }
  return Json().Set("tools", std::move(tools));
}

Result<std::string> ToolState::CarryOut(const Tool& tool, const Json& arguments) {
  for (const auto& [name, description] : tool.arguments) {
    if (arguments.Find(name) == nullptr) return Invalid("the argument '" + name + "' is missing");
  }
  std::string answer = tool.returns.empty() ? "ok" : Fill(tool.returns, arguments);
  if (tool.act == Tool::Act::kNothing) return answer;
  const std::vector<std::string> steps = StepsOf(tool.field, arguments);
  Json* found = const_cast<Json*>(At(state_, steps));
  if (tool.act == Tool::Act::kRead) {
    if (found == nullptr) return Invalid("there is no such entry");
    return tool.returns.empty() ? TextOf(*found) : answer;
  }
  Json value = FillTree(tool.value, arguments);
  room_ -= std::min(room_, WeightOf(value));
  if (room_ == 0) return Invalid("the workspace is full");
  if (tool.act == Tool::Act::kAppend) {
    if (found == nullptr || found->array() == nullptr) return Invalid("there is no such list");
    found->Push(std::move(value));
  } else if (found != nullptr) {
    *found = std::move(value);
  } else {
    const std::vector<std::string> above(steps.begin(), steps.end() - 1);
    Json* place = const_cast<Json*>(At(state_, above));
    if (place == nullptr || !Put(place, steps.back(), std::move(value))) {
      return Invalid("there is no such entry");
    }
  }
  return answer;
}

Json ToolState::Call(const Json& params, std::optional<Json>* call) {
  const std::string name = params.StringAt("name");
  static const Json kNothing = Json::EmptyObject();
  const Json* given = params.Find("arguments");
  const Json& arguments = given != nullptr ? *given : kNothing;
  Result<std::string> done = Invalid("unknown tool '" + name + "'");
  for (const Tool& tool : tools_) {
    if (tool.name == name) done = CarryOut(tool, arguments);
  }
  std::string text = done.ok() ? done.value() : done.error().what;
  *call = Json()
              .Set("tool", name)
              .Set("arguments", arguments)
              .Set("result", text)
              .Set("failed", !done.ok());
  return TextResult(text, !done.ok());
}

std::optional<Json> ToolState::Answer(const Json& message, std::optional<Json>* call) {
  const std::string method = message.StringAt("method");
  const Json* id = message.Find("id");
  if (id == nullptr) return std::nullopt;
  static const Json kNothing = Json::EmptyObject();
  const Json* found = message.Find("params");
  const Json& params = found != nullptr ? *found : kNothing;
  if (method == "initialize") {
    std::string version = params.StringAt("protocolVersion");
    Json result;
    result.Set("protocolVersion", version.empty() ? "2025-06-18" : version);
    result.Set("capabilities", Json().Set("tools", Json::EmptyObject()));
    result.Set("serverInfo", Json().Set("name", "workspace").Set("version", "1"));
    return Reply(*id, "result", std::move(result));
  }
  if (method == "ping") return Reply(*id, "result", Json::EmptyObject());
  if (method == "tools/list") return Reply(*id, "result", List());
  if (method == "tools/call") return Reply(*id, "result", Call(params, call));
  return Reply(*id, "error", Wrong(-32601, "unknown method"));
}

std::string ToolsUrl(const ToolAddress& address) {
  return "http://host.openshell.internal:" + std::to_string(address.port) +
         (address.path.empty() ? "/mcp" : address.path);
}

Result<std::string> WithTools(const std::string& policy, int port) {
  Json all = Json::EmptyObject();
  if (!policy.empty()) {
    codec::YamlNode node = TRY(codec::ParseYaml(policy, "policy"));
    all = TRY(JsonOf("policy", node));
  }
  // The short form allows a host beside what it allows by itself.
  if (all.Find("version") == nullptr && all.Find("network_policies") == nullptr) {
    const Json host("host.openshell.internal:" + std::to_string(port));
    const Json* found = all.Find("endpoints");
    Json endpoints = found != nullptr ? *found : Json::EmptyArray();
    if (endpoints.array() != nullptr || endpoints.is_null()) endpoints.Push(host);
    Put(&all, "endpoints", std::move(endpoints));
    return codec::RenderJson(all);
  }
  Json endpoint;
  endpoint.Set("host", "host.openshell.internal").Set("port", port);
  Json endpoints = Json::EmptyArray();
  endpoints.Push(std::move(endpoint));
  Json binaries = Json::EmptyArray();
  binaries.Push(Json().Set("path", "/**"));
  Json entry;
  entry.Set("name", "tools")
      .Set("endpoints", std::move(endpoints))
      .Set("binaries", std::move(binaries));
  const Json* found = all.Find("network_policies");
  Json policies = found != nullptr ? *found : Json::EmptyObject();
  Put(&policies, "evaluation_tools", std::move(entry));
  Put(&all, "network_policies", std::move(policies));
  return codec::RenderJson(all);
}

}  // namespace eval
