// SPDX-License-Identifier: Apache-2.0
// Claude Code's stream-json: system/init, system/api_retry, assistant, user, result. Two things
// about it are easy to get wrong, and were seen in recordings of 2.1.197: `subtype` says "success"
// also when `is_error` is true, and `usage` leaves out side requests that `modelUsage` counts.
#include <algorithm>
#include <map>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

constexpr size_t kMessagesMax = 10000;  // Turns whose usage is remembered.
constexpr size_t kIdBytesMax = 200;
constexpr size_t kDenialsMax = 100;

Tokens FromUsage(const Json& usage) {
  return {CountAt(usage, "input_tokens"), CountAt(usage, "output_tokens"),
          CountAt(usage, "cache_read_input_tokens"), CountAt(usage, "cache_creation_input_tokens")};
}

Tokens FromModelUsage(const Json& usage) {
  return {CountAt(usage, "inputTokens"), CountAt(usage, "outputTokens"),
          CountAt(usage, "cacheReadInputTokens"), CountAt(usage, "cacheCreationInputTokens")};
}

class ClaudeDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeSystem(const Json& event, Entries* entries);
  void TakeAssistant(const Json& event, Entries* entries);
  void TakeUser(const Json& event, Entries* entries);
  void TakeResult(const Json& event, Entries* entries);
  std::string FailureOf(int exit_status) const;

  AgentSummary summary_;
  // Tokens by message id: an event per content block repeats it.
  std::map<std::string, Tokens> messages_;
  bool is_error_ = false;
  std::string subtype_;
  std::string last_error_;  // The error of the last refused model request.
  std::string last_text_;
};

void ClaudeDialect::TakeLine(std::string_view line, Entries* entries) {
  const std::optional<Json> parsed = ParseEvent(line, entries);
  if (!parsed) return;
  const Json& event = *parsed;
  const std::string type = event.StringAt("type");
  if (type == "system") TakeSystem(event, entries);
  if (type == "assistant") TakeAssistant(event, entries);
  if (type == "user") TakeUser(event, entries);
  if (type == "result") TakeResult(event, entries);
}

void ClaudeDialect::TakeSystem(const Json& event, Entries* entries) {
  const std::string subtype = event.StringAt("subtype");
  if (subtype == "init") {
    summary_.model = codec::CutUtf8(event.StringAt("model"), 200);
    summary_.agent_version = codec::CutUtf8(event.StringAt("claude_code_version"), 100);
    entries->Add(LogEntry("claude-code " + summary_.agent_version + ", model " + summary_.model));
  } else if (subtype == "api_retry") {
    const int64_t status = CountAt(event, "error_status");
    ++summary_.retries;
    last_error_ = "the model returned an error: " + (status ? std::to_string(status) + " " : "") +
                  codec::CutUtf8(event.StringAt("error"), 200);
    entries->Add(LogEntry(last_error_ + ", retry " + std::to_string(CountAt(event, "attempt")) +
                          " of " + std::to_string(CountAt(event, "max_retries"))));
  }
}

void ClaudeDialect::TakeAssistant(const Json& event, Entries* entries) {
  const Json* message = event.Find("message");
  if (message == nullptr) return;
  const std::string id = codec::CutUtf8(message->StringAt("id"), kIdBytesMax);
  const Json* usage = message->Find("usage");
  // "<synthetic>" messages are the agent's own words about a failure, no turn of the model.
  if (usage != nullptr && message->StringAt("model") != "<synthetic>") {
    if (messages_.size() < kMessagesMax || messages_.count(id)) messages_[id] = FromUsage(*usage);
  }
  const Json* content = message->Find("content");
  if (content == nullptr || content->array() == nullptr) return;
  const bool nested = !event.StringAt("parent_tool_use_id").empty();
  const std::string indent = nested ? "  " : "";
  for (const Json& block : *content->array()) {
    const std::string type = block.StringAt("type");
    if (type == "text") {
      const std::string text = block.StringAt("text");
      if (!nested) last_text_ = codec::CutUtf8(text, kResultBytesMax);
      AppendLines(text, indent, entries);
    } else if (type == "tool_use") {
      ++summary_.tool_calls;
      AppendTool(block.StringAt("name"), block.Find("input"), indent, entries);
    } else if (type == "thinking" && !nested) {
      AppendThought(block.StringAt("thinking"), entries);
    }
  }
}

void ClaudeDialect::TakeUser(const Json& event, Entries* entries) {
  const Json* message = event.Find("message");
  const Json* content = message ? message->Find("content") : nullptr;
  if (content == nullptr || content->array() == nullptr) return;
  for (const Json& block : *content->array()) {
    if (block.StringAt("type") != "tool_result" || !block.BooleanAt("is_error")) continue;
    AppendFailure(TextOf(block.Find("content")), entries);
  }
}

void ClaudeDialect::TakeResult(const Json& event, Entries* entries) {
  summary_.saw_result = true;
  is_error_ = event.BooleanAt("is_error");
  subtype_ = codec::CutUtf8(event.StringAt("subtype"), 100);
  summary_.turns = CountAt(event, "num_turns");
  summary_.api_error_status = std::min<int64_t>(CountAt(event, "api_error_status"), 999);
  summary_.result_text = codec::CutUtf8(event.StringAt("result"), kResultBytesMax);
  summary_.cost_usd = DollarsAt(event, "total_cost_usd");
  Tokens tokens;
  const Json* models = event.Find("modelUsage");
  if (models != nullptr && models->object() != nullptr && !models->object()->empty()) {
    for (const Json::Member& model : *models->object()) tokens += FromModelUsage(model.second);
  } else if (const Json* usage = event.Find("usage")) {
    tokens = FromUsage(*usage);
  }
  summary_.tokens = tokens;
  summary_.permission_denials.clear();
  const Json* denials = event.Find("permission_denials");
  if (denials != nullptr && denials->array() != nullptr) {
    for (const Json& denial : *denials->array()) {
      if (summary_.permission_denials.size() >= kDenialsMax) break;
      summary_.permission_denials.push_back(
          DescribeTool(denial.StringAt("tool_name"), denial.Find("tool_input")));
    }
  }
  entries->Add(EndEntry(summary_, is_error_));
}

// Why the run did not succeed; empty if it did.
std::string ClaudeDialect::FailureOf(int exit_status) const {
  if (subtype_ == "error_max_turns") return "the agent reached its turn limit";
  if (subtype_ == "error_max_budget_usd") return "the agent reached its own budget";
  if (is_error_ || summary_.api_error_status >= 400) {
    const bool told = subtype_ != "success";
    return DescribeModelError(summary_.api_error_status, summary_.result_text.empty() && told
                                                             ? subtype_
                                                             : summary_.result_text);
  }
  if (exit_status != 0) {
    return DescribeStatus(exit_status) + (last_error_.empty() ? "" : "; " + last_error_);
  }
  if (!summary_.saw_result) return kNoResult;
  return {};
}

AgentSummary ClaudeDialect::Finish(int exit_status) {
  if (!summary_.saw_result) {  // Cancelled or killed: what the messages said until then.
    summary_.turns = static_cast<int64_t>(messages_.size());
    summary_.tokens = {};
    for (const auto& [id, tokens] : messages_) summary_.tokens += tokens;
    summary_.result_text = last_text_;
  }
  summary_.reason = FailureOf(exit_status);
  summary_.succeeded = summary_.reason.empty();
  // Exit status 0 and "success", yet the agent's own rules refused every call: nothing was done.
  const int64_t refused = static_cast<int64_t>(summary_.permission_denials.size());
  if (summary_.succeeded && refused > 0 && refused >= summary_.tool_calls) {
    summary_.succeeded = false;
    summary_.reason =
        "the agent's own permission settings denied " + summary_.permission_denials.front();
  }
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakeClaudeDialect() { return std::make_unique<ClaudeDialect>(); }

}  // namespace agent
