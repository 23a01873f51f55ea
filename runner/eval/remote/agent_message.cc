// SPDX-License-Identifier: Apache-2.0
#include "eval/remote/agent_message.h"

#include <algorithm>

#include "base/ascii.h"

namespace eval {
namespace {

using codec::Json;

constexpr char kToolsField[] = "mcp_server_url";
// A name of the server for the model.
constexpr char kToolsLabel[] = "workspace";

const Json::Array& ListAt(const Json& object, std::string_view name) {
  static const Json::Array kNothing;
  const Json* found = object.Find(name);
  return found != nullptr && found->array() != nullptr ? *found->array() : kNothing;
}

// Returns a member that is an object; null if there is none.
const Json* ObjectAt(const Json& object, std::string_view name) {
  const Json* found = object.Find(name);
  return found != nullptr && found->object() != nullptr ? found : nullptr;
}

// Adds a line, or notes that there is something else than text.
void AddText(const Json* text, AgentAnswer* answer) {
  if (text == nullptr || text->string() == nullptr) {
    answer->whole = false;
    return;
  }
  if (!answer->text.empty()) answer->text += '\n';
  answer->text += *text->string();
}

// Adds the parts of a message or an artifact of A2A.
void AddParts(const Json* message, AgentAnswer* answer) {
  if (message == nullptr) return;
  for (const Json& part : ListAt(*message, "parts")) AddText(part.Find("text"), answer);
}

// Whether an agent that sent no text said nothing, or said it elsewhere, is not known.
void DoubtSilence(AgentAnswer* answer) { answer->whole = answer->whole && !answer->text.empty(); }

// "TASK_STATE_INPUT_REQUIRED" of 1.0 is "input-required" of 0.3.
std::string StateOf(const Json& task) {
  constexpr std::string_view kPrefix = "task-state-";
  const Json* status = task.Find("status");
  std::string state = status == nullptr ? "" : ascii::LowerCase(status->StringAt("state"));
  std::replace(state.begin(), state.end(), '_', '-');
  return state.starts_with(kPrefix) ? state.substr(kPrefix.size()) : state;
}

A2aStep StepOfTask(const Json& task) {
  const std::string state = StateOf(task);
  if (state == "submitted" || state == "working") return {{}, task.StringAt("id")};
  AgentAnswer answer{.ending = Ending::kEnded, .whole = true};
  for (const Json& message : ListAt(task, "history")) {
    const std::string role = message.StringAt("role");
    if (role != "user" && role != "ROLE_USER") AddParts(&message, &answer);
  }
  for (const Json& artifact : ListAt(task, "artifacts")) AddParts(&artifact, &answer);
  AddParts(ObjectAt(*task.Find("status"), "message"), &answer);
  DoubtSilence(&answer);
  if (state != "completed") {
    answer.ending = Ending::kFailed;
    answer.reason = "the agent's task ended as '" + state + "'";
    answer.whole = false;
  }
  return {std::move(answer), ""};
}

Json Call(std::string_view method, Json params) {
  return Json()
      .Set("jsonrpc", "2.0")
      .Set("id", 1)
      .Set("method", method)
      .Set("params", std::move(params));
}

}  // namespace

Json RenderHttpTask(const AgentTask& task) {
  Json body;
  body.Set("prompt", task.prompt);
  if (task.announces_url) body.Set(kToolsField, task.tools_url);
  return body;
}

Result<AgentAnswer> ParseHttpAnswer(const Json& body) {
  for (const char* name : {"response", "output", "text"}) {
    const Json* found = body.Find(name);
    if (found == nullptr) continue;
    if (found->string() == nullptr) return Invalid("'" + std::string(name) + "' is not a text");
    return AgentAnswer{.ending = Ending::kEnded, .text = *found->string(), .whole = true};
  }
  return Invalid("it has neither 'response' nor 'output' nor 'text'");
}

Json RenderResponsesTask(const AgentTask& task) {
  Json body;
  if (!task.model.empty()) body.Set("model", task.model);
  body.Set("input", task.prompt);
  Json tools = Json::EmptyArray();
  tools.Push(Json()
                 .Set("type", "mcp")
                 .Set("server_label", kToolsLabel)
                 .Set("server_url", task.tools_url)
                 .Set("require_approval", "never"));
  return body.Set("tools", std::move(tools));
}

Result<AgentAnswer> ParseResponsesAnswer(const Json& body) {
  const std::string status = body.StringAt("status");
  if (status.empty()) return Invalid("it has no 'status'");
  if (status == "queued" || status == "in_progress") {
    return Invalid("it is not final: its status is '" + status + "'");
  }
  if (const Json* error = ObjectAt(body, "error")) {
    return AgentAnswer{.ending = Ending::kFailed,
                       .reason = "the agent says: " + error->StringAt("message")};
  }
  const Json* output = body.Find("output");
  if (output == nullptr || output->array() == nullptr) return Invalid("'output' is not a list");
  AgentAnswer answer{.ending = Ending::kEnded, .whole = true};
  std::string waits;
  for (const Json& item : *output->array()) {
    const std::string type = item.StringAt("type");
    if (type == "mcp_approval_request" || type == "function_call" || type == "custom_tool_call") {
      waits = type;
    }
    if (type != "message") continue;
    for (const Json& part : ListAt(item, "content")) {
      const bool refuses = part.StringAt("type") == "refusal";
      AddText(part.Find(refuses ? "refusal" : "text"), &answer);
    }
  }
  DoubtSilence(&answer);
  if (status != "completed" || !waits.empty()) {
    answer.ending = Ending::kFailed;
    answer.whole = false;
    answer.reason = status != "completed" ? "the response is '" + status + "'"
                                          : "the agent waits for an answer to a " + waits;
    if (const Json* details = ObjectAt(body, "incomplete_details")) {
      answer.reason += ": " + details->StringAt("reason");
    }
  }
  return answer;
}

Result<A2aInterface> ParseAgentCard(const Json& card) {
  for (const Json& one : ListAt(card, "supportedInterfaces")) {
    const std::string version = one.StringAt("protocolVersion");
    const std::string url = one.StringAt("url");
    if (one.StringAt("protocolBinding") != "JSONRPC" || url.empty()) continue;
    if (version.starts_with("1.")) return A2aInterface{url, true};
    if (version.starts_with("0.")) return A2aInterface{url, false};
  }
  const std::string url = card.StringAt("url");
  const std::string transport = card.StringAt("preferredTransport");
  if (!url.empty() && (transport.empty() || transport == "JSONRPC")) {
    return A2aInterface{url, false};
  }
  return Invalid("the agent's card has no interface of JSON-RPC in A2A 0.3 or 1.0");
}

Json RenderA2aMessage(const AgentTask& task, std::string message_id, bool is_1) {
  Json part;
  if (!is_1) part.Set("kind", "text");
  part.Set("text", task.prompt);
  Json parts = Json::EmptyArray();
  parts.Push(std::move(part));
  Json message;
  if (!is_1) message.Set("kind", "message");
  message.Set("messageId", std::move(message_id))
      .Set("role", is_1 ? "ROLE_USER" : "user")
      .Set("parts", std::move(parts));
  if (task.announces_url) message.Set("metadata", Json().Set(kToolsField, task.tools_url));
  Json params;
  params.Set("message", std::move(message));
  return Call(is_1 ? "SendMessage" : "message/send", std::move(params));
}

Json RenderA2aQuery(const std::string& task_id, bool is_1) {
  return Call(is_1 ? "GetTask" : "tasks/get", Json().Set("id", task_id));
}

Result<A2aStep> ParseA2aAnswer(const Json& body) {
  if (const Json* error = ObjectAt(body, "error")) {
    return Error{Code::kTemporary, "the agent says: " + error->StringAt("message")};
  }
  const Json* result = ObjectAt(body, "result");
  if (result == nullptr) return Invalid("it has neither 'result' nor 'error'");
  const Json* task = ObjectAt(*result, "task");
  if (task == nullptr && ObjectAt(*result, "status") != nullptr) task = result;
  if (task != nullptr && ObjectAt(*task, "status") != nullptr) {
    A2aStep step = StepOfTask(*task);
    if (!step.answer && step.task_id.empty()) return Invalid("the agent's task has no id");
    return step;
  }
  const Json* message = ObjectAt(*result, "message");
  if (message == nullptr && result->Find("parts") != nullptr) message = result;
  if (message == nullptr) return Invalid("its result is neither a message nor a task");
  AgentAnswer answer{.ending = Ending::kEnded, .whole = true};
  AddParts(message, &answer);
  DoubtSilence(&answer);
  return A2aStep{std::move(answer), ""};
}

}  // namespace eval
