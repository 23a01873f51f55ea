// SPDX-License-Identifier: Apache-2.0
// `codex exec --json`: thread.started, turn.started, item.started, item.completed, error,
// turn.completed or turn.failed. Seen in recordings of 0.169: `input_tokens` includes what came
// from the cache, "error" events are retries as well as the last word, and no event has an HTTP
// status of its own.
#include <algorithm>
#include <utility>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

class CodexDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeStarted(const Json& item, Entries* entries);
  void TakeCompleted(const Json& item, Entries* entries);
  void TakeFileChange(const Json& item, Entries* entries);
  void TakeError(const std::string& message, Entries* entries);

  AgentSummary summary_;
  bool failed_ = false;
  std::string error_;
  std::unique_ptr<Dialect> plain_ = MakePlainDialect();  // Its log beside the events.
};

void CodexDialect::TakeLine(std::string_view line, Entries* entries) {
  if (!line.starts_with('{')) return plain_->TakeLine(line, entries);
  const std::optional<Json> event = ParseEvent(line, entries);
  if (!event) return;
  const std::string type = event->StringAt("type");
  if (type == "item.started") TakeStarted(ObjectAt(*event, "item"), entries);
  if (type == "item.completed") TakeCompleted(ObjectAt(*event, "item"), entries);
  if (type == "error") TakeError(event->StringAt("message"), entries);
  if (type == "turn.started") ++summary_.turns;
  if (type == "turn.failed") {
    failed_ = true;
    summary_.saw_result = true;
    error_ = codec::CutUtf8(ObjectAt(*event, "error").StringAt("message"), kResultBytesMax);
    entries->Add(EndEntry(summary_, true));
  }
  if (type == "turn.completed") {
    failed_ = false;
    summary_.saw_result = true;
    const Json& usage = ObjectAt(*event, "usage");
    Tokens tokens = WithoutCached(CountAt(usage, "input_tokens"), CountAt(usage, "output_tokens"),
                                  CountAt(usage, "cached_input_tokens"));
    tokens.cache_write = CountAt(usage, "cache_write_input_tokens");
    tokens.input = std::max<int64_t>(tokens.input - tokens.cache_write, 0);
    summary_.tokens += tokens;
    entries->Add(EndEntry(summary_, false));
  }
}

void CodexDialect::TakeStarted(const Json& item, Entries* entries) {
  const std::string type = item.StringAt("type");
  if (type == "command_execution") AppendTool("shell", &item, "", entries);
  if (type == "web_search") AppendTool("search", &item, "", entries);
  if (type == "mcp_tool_call") AppendTool(item.StringAt("tool"), nullptr, "", entries);
}

void CodexDialect::TakeCompleted(const Json& item, Entries* entries) {
  const std::string type = item.StringAt("type");
  if (type == "agent_message") {
    const std::string text = item.StringAt("text");
    summary_.result_text = codec::CutUtf8(text, kResultBytesMax);
    AppendLines(text, "", entries);
  } else if (type == "reasoning") {
    AppendThought(item.StringAt("text"), entries);
  } else if (type == "command_execution") {
    ++summary_.tool_calls;
    if (item.IntegerAt("exit_code") != 0)
      AppendFailure(item.StringAt("aggregated_output"), entries);
  } else if (type == "file_change") {
    TakeFileChange(item, entries);
  } else if (type == "mcp_tool_call" || type == "web_search") {
    ++summary_.tool_calls;
  } else if (type == "error") {
    AppendFailure(item.StringAt("message"), entries);
  }
}

// Detects that Codex's own sandbox, which cannot start inside another one, kept it from writing: it
// ends with "turn.completed" and status 0 all the same.
void CodexDialect::TakeFileChange(const Json& item, Entries* entries) {
  ++summary_.tool_calls;
  for (const Json& change : ItemsAt(item, "changes")) {
    AppendTool("edit", &change, "", entries);
  }
  const std::string status = item.StringAt("status");
  if (status != "failed" && status != "declined") return;
  const std::string what = "a file change " + (status == "failed" ? status : "was declined");
  AppendFailure(what, entries);
  if (summary_.blocked.empty()) summary_.blocked = what;
}

void CodexDialect::TakeError(const std::string& message, Entries* entries) {
  if (message.starts_with("Reconnecting")) ++summary_.retries;
  error_ = codec::CutUtf8(message, kResultBytesMax);
  AppendFailure(message, entries);
}

AgentSummary CodexDialect::Finish(int exit_status) {
  if (summary_.blocked.empty()) summary_.blocked = plain_->Finish(exit_status).blocked;
  Conclude(failed_, error_, exit_status, &summary_);
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakeCodexDialect() { return std::make_unique<CodexDialect>(); }

}  // namespace agent
