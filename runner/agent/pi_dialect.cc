// SPDX-License-Identifier: Apache-2.0
// `pi --mode json`: session, agent_start, turn_start, message_start, message_update, message_end,
// tool_execution_start, tool_execution_end, turn_end, auto_retry_start, agent_end. Seen in
// recordings of 0.73: it exits with 0 after every error of the model, which only the last message
// tells; each `message_update` has the whole message so far, twice; `agent_end` has all messages.
#include <algorithm>
#include <utility>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

constexpr std::string_view kUpdate = R"({"type":"message_update")";
constexpr std::string_view kEnd = R"({"type":"agent_end")";

class PiDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  void TakeBeginning(std::string_view beginning) override {
    if (beginning.starts_with(kEnd)) summary_.saw_result = true;
  }
  std::string_view repeats() const override { return kUpdate; }
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeMessage(const Json& message, Entries* entries);

  AgentSummary summary_;
  std::string stop_reason_;  // The stop reason of the last message.
  std::string error_;
};

void PiDialect::TakeLine(std::string_view line, Entries* entries) {
  if (line.starts_with(kUpdate)) return;  // The message comes whole at its end.
  if (line.starts_with(kEnd)) {           // Its messages were read before, one by one.
    summary_.saw_result = true;
    if (stop_reason_ != "error") entries->Add(EndEntry(summary_, false));
    return;
  }
  const std::optional<Json> event = ParseEvent(line, entries);
  if (!event) return;
  const std::string type = event->StringAt("type");
  if (type == "agent_start") summary_.saw_result = false;
  if (type == "message_end") TakeMessage(ObjectAt(*event, "message"), entries);
  if (type == "tool_execution_start") {
    ++summary_.tool_calls;
    AppendTool(event->StringAt("toolName"), event->Find("args"), "", entries);
  }
  if (type == "tool_execution_end" && event->BooleanAt("isError")) {
    AppendFailure(TextOf(ObjectAt(*event, "result").Find("content")), entries);
  }
  if (type == "auto_retry_start") {
    ++summary_.retries;
    AppendFailure(event->StringAt("errorMessage") + ", retry " +
                      std::to_string(CountAt(*event, "attempt")) + " of " +
                      std::to_string(CountAt(*event, "maxAttempts")),
                  entries);
  }
}

void PiDialect::TakeMessage(const Json& message, Entries* entries) {
  if (message.StringAt("role") != "assistant") return;
  ++summary_.turns;
  stop_reason_ = codec::CutUtf8(message.StringAt("stopReason"), 100);
  error_ = codec::CutUtf8(message.StringAt("errorMessage"), kResultBytesMax);
  if (summary_.model.empty()) summary_.model = codec::CutUtf8(message.StringAt("model"), 200);
  const Json& usage = ObjectAt(message, "usage");
  summary_.tokens += {CountAt(usage, "input"), CountAt(usage, "output"),
                      CountAt(usage, "cacheRead"), CountAt(usage, "cacheWrite")};
  // Without a price of its own it says 0.
  if (const double cost = DollarsAt(ObjectAt(usage, "cost"), "total").value_or(0); cost > 0) {
    summary_.cost_usd = std::min(summary_.cost_usd.value_or(0) + cost, 1e9);
  }
  for (const Json& part : ItemsAt(message, "content")) {
    const std::string type = part.StringAt("type");
    if (type == "thinking") AppendThought(part.StringAt("thinking"), entries);
    if (type != "text") continue;
    const std::string text = part.StringAt("text");
    summary_.result_text = codec::CutUtf8(text, kResultBytesMax);
    AppendLines(text, "", entries);
  }
  if (stop_reason_ == "error") AppendFailure(error_, entries);
}

AgentSummary PiDialect::Finish(int exit_status) {
  if (stop_reason_ == "error" || stop_reason_ == "aborted") {
    summary_.api_error_status = StatusIn(error_);
    summary_.reason = DescribeModelError(summary_.api_error_status, error_);
  } else if (exit_status != 0) {
    summary_.reason = DescribeStatus(exit_status);
  } else if (!summary_.saw_result || stop_reason_.empty()) {
    summary_.reason = kNoResult;
  }
  summary_.succeeded = summary_.reason.empty();
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakePiDialect() { return std::make_unique<PiDialect>(); }

}  // namespace agent
