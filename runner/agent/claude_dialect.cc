// SPDX-License-Identifier: Apache-2.0
// Claude Code's stream-json: system/init, system/api_retry, assistant, user, result. Two things
// about it are easy to get wrong, and were seen in recordings of 2.1.197: `subtype` says "success"
// also when `is_error` is true, and `usage` leaves out side requests that `modelUsage` counts.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "agent/dialect.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

constexpr size_t kResultBytesMax = size_t{64} << 10;
constexpr size_t kMessagesMax = 10000;  // Turns whose usage is remembered.
constexpr size_t kDenialsMax = 100;
constexpr size_t kTextLinesMax = 60;             // Of one text block, in the log.
constexpr int64_t kCountMax = int64_t{1} << 50;  // The agent's own figures: sums must not overflow.

int64_t Count(const Json& json, std::string_view name) {
  return std::clamp<int64_t>(json.IntegerAt(name), 0, kCountMax);
}

Tokens& operator+=(Tokens& sum, const Tokens& more) {
  sum.input = std::min(sum.input + more.input, kCountMax);
  sum.output = std::min(sum.output + more.output, kCountMax);
  sum.cache_read = std::min(sum.cache_read + more.cache_read, kCountMax);
  sum.cache_write = std::min(sum.cache_write + more.cache_write, kCountMax);
  return sum;
}

Tokens FromUsage(const Json& usage) {
  return {Count(usage, "input_tokens"), Count(usage, "output_tokens"),
          Count(usage, "cache_read_input_tokens"), Count(usage, "cache_creation_input_tokens")};
}

Tokens FromModelUsage(const Json& usage) {
  return {Count(usage, "inputTokens"), Count(usage, "outputTokens"),
          Count(usage, "cacheReadInputTokens"), Count(usage, "cacheCreationInputTokens")};
}

// "Bash npm test": the tool and the one argument that tells a reader most.
std::string DescribeTool(const std::string& name, const Json* input) {
  constexpr std::array<std::string_view, 9> kTelling = {"command", "file_path",   "notebook_path",
                                                        "path",    "pattern",     "url",
                                                        "query",   "description", "skill"};
  std::string out = name;
  if (input == nullptr) return out;
  for (std::string_view member : kTelling) {
    if (const std::string argument = input->StringAt(member); !argument.empty()) {
      return out + " " + codec::CutUtf8(argument, 300);
    }
  }
  return out;
}

// The text of a tool result: a string, or a list of parts.
std::string TextOf(const Json* content) {
  if (content == nullptr) return {};
  if (const std::string* text = content->string()) return *text;
  std::string out;
  if (const Json::Array* parts = content->array()) {
    for (const Json& part : *parts) out += part.StringAt("text");
  }
  return out;
}

// One entry per line of a text, the first few.
void AppendLines(std::string_view text, const std::string& indent,
                 std::vector<std::string>* entries) {
  for (size_t lines = 0; !text.empty(); ++lines) {
    const size_t line_end = text.find('\n');
    const std::string_view line = text.substr(0, line_end);
    text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end + 1);
    if (lines == kTextLinesMax) {
      entries->push_back(indent + "(...)");
      return;
    }
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    entries->push_back(indent + LogEntry(line));
  }
}

class ClaudeDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, std::vector<std::string>* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeSystem(const Json& event, std::vector<std::string>* entries);
  void TakeAssistant(const Json& event, std::vector<std::string>* entries);
  void TakeUser(const Json& event, std::vector<std::string>* entries);
  void TakeResult(const Json& event, std::vector<std::string>* entries);
  std::string FailureOf(int exit_status) const;

  AgentSummary summary_;
  std::map<std::string, Tokens> messages_;  // By message id: an event per content block repeats it.
  bool is_error_ = false;
  std::string subtype_;
  std::string last_error_;  // Of the last refused model request.
  std::string last_text_;
};

void ClaudeDialect::TakeLine(std::string_view line, std::vector<std::string>* entries) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const Result<Json> parsed =
      codec::ParseJson(line, {.bytes_max = size_t{16} << 20, .values_max = 200000});
  if (!parsed.ok() || parsed.value().object() == nullptr) {
    entries->push_back(LogEntry(line));  // A warning of the runtime, a stack trace, ...
    return;
  }
  const Json& event = parsed.value();
  const std::string type = event.StringAt("type");
  if (type == "system") TakeSystem(event, entries);
  if (type == "assistant") TakeAssistant(event, entries);
  if (type == "user") TakeUser(event, entries);
  if (type == "result") TakeResult(event, entries);
}

void ClaudeDialect::TakeSystem(const Json& event, std::vector<std::string>* entries) {
  const std::string subtype = event.StringAt("subtype");
  if (subtype == "init") {
    summary_.model = codec::CutUtf8(event.StringAt("model"), 200);
    summary_.agent_version = codec::CutUtf8(event.StringAt("claude_code_version"), 100);
    entries->push_back(
        LogEntry("claude-code " + summary_.agent_version + ", model " + summary_.model));
  } else if (subtype == "api_retry") {
    const int64_t status = Count(event, "error_status");
    last_error_ = "the model returned an error: " + (status ? std::to_string(status) + " " : "") +
                  codec::CutUtf8(event.StringAt("error"), 200);
    entries->push_back(LogEntry(last_error_ + ", retry " + std::to_string(Count(event, "attempt")) +
                                " of " + std::to_string(Count(event, "max_retries"))));
  }
}

void ClaudeDialect::TakeAssistant(const Json& event, std::vector<std::string>* entries) {
  const Json* message = event.Find("message");
  if (message == nullptr) return;
  const std::string id = message->StringAt("id");
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
      entries->push_back(indent + "> " +
                         LogEntry(DescribeTool(block.StringAt("name"), block.Find("input"))));
    }
  }
}

void ClaudeDialect::TakeUser(const Json& event, std::vector<std::string>* entries) {
  const Json* message = event.Find("message");
  const Json* content = message ? message->Find("content") : nullptr;
  if (content == nullptr || content->array() == nullptr) return;
  for (const Json& block : *content->array()) {
    if (block.StringAt("type") != "tool_result" || !block.BooleanAt("is_error")) continue;
    entries->push_back("  failed: " + LogEntry(codec::CutUtf8(TextOf(block.Find("content")), 500)));
  }
}

void ClaudeDialect::TakeResult(const Json& event, std::vector<std::string>* entries) {
  summary_.saw_result = true;
  is_error_ = event.BooleanAt("is_error");
  subtype_ = codec::CutUtf8(event.StringAt("subtype"), 100);
  summary_.turns = Count(event, "num_turns");
  summary_.api_error_status = std::min<int64_t>(Count(event, "api_error_status"), 999);
  summary_.result_text = codec::CutUtf8(event.StringAt("result"), kResultBytesMax);
  if (const Json* cost = event.Find("total_cost_usd"); cost && cost->number()) {
    summary_.cost_usd = std::clamp(*cost->number(), 0.0, 1e9);
  }
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
  char line[160];
  std::snprintf(line, sizeof line, "%s after %lld turns, %lld tool calls, $%.4f",
                is_error_ ? "failed" : "done", static_cast<long long>(summary_.turns),
                static_cast<long long>(summary_.tool_calls), summary_.cost_usd.value_or(0));
  entries->push_back(line);
}

// Why the run is no success; empty when it is one.
std::string ClaudeDialect::FailureOf(int exit_status) const {
  if (subtype_ == "error_max_turns") return "the agent reached its turn limit";
  if (subtype_ == "error_max_budget_usd") return "the agent reached its own budget";
  if (is_error_ || summary_.api_error_status >= 400) {
    std::string reason = "the agent reports an error";
    if (summary_.api_error_status > 0) {
      reason = "the model responded with " + std::to_string(summary_.api_error_status);
    }
    if (!summary_.result_text.empty()) {
      reason += ": " + codec::CutUtf8(summary_.result_text, 300);
    } else if (subtype_ != "success" && !subtype_.empty()) {
      reason += ": " + subtype_;
    }
    return reason;
  }
  if (exit_status != 0) {
    return DescribeStatus(exit_status) + (last_error_.empty() ? "" : "; " + last_error_);
  }
  if (!summary_.saw_result) return "the agent ended without a result";
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
