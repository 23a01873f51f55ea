// SPDX-License-Identifier: Apache-2.0
// `copilot --output-format json`: `type` and `data`; session.*, assistant.message,
// tool.execution_start, tool.execution_complete, model.call_failure, session.error, result. Seen in
// recordings of 1.0.102: no event has the tokens that were used.
#include <algorithm>
#include <utility>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

class CopilotDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeMessage(const Json& data, Entries* entries);
  void TakeTool(const std::string& type, const Json& data, Entries* entries);
  void TakeError(const Json& data, Entries* entries);

  AgentSummary summary_;
  int64_t exit_code_ = 0;
  bool failed_ = false;  // True if its last step with the model, or as a session, failed.
  std::string error_;
};

void CopilotDialect::TakeLine(std::string_view line, Entries* entries) {
  const std::optional<Json> event = ParseEvent(line, entries);
  if (!event) return;
  const std::string type = event->StringAt("type");
  const Json& data = ObjectAt(*event, "data");
  if (type == "assistant.message") TakeMessage(data, entries);
  if (type.starts_with("tool.execution_")) TakeTool(type, data, entries);
  if (type == "session.error") TakeError(data, entries);
  if (type == "model.call_failure") {
    summary_.api_error_status = std::min<int64_t>(CountAt(data, "statusCode"), 999);
    if (CountAt(data, "retryAttempt") > 0) ++summary_.retries;
  }
  if (type != "result") return;
  summary_.saw_result = true;
  exit_code_ = CountAt(*event, "exitCode");
  entries->Add(EndEntry(summary_, exit_code_ != 0));
}

void CopilotDialect::TakeMessage(const Json& data, Entries* entries) {
  ++summary_.turns;
  failed_ = false;
  summary_.api_error_status = 0;
  if (summary_.model.empty()) summary_.model = codec::CutUtf8(data.StringAt("model"), 200);
  AppendThought(data.StringAt("reasoningText"), entries);
  const std::string text = data.StringAt("content");
  if (!text.empty()) summary_.result_text = codec::CutUtf8(text, kResultBytesMax);
  AppendLines(text, "", entries);
}

void CopilotDialect::TakeTool(const std::string& type, const Json& data, Entries* entries) {
  if (type == "tool.execution_start") {
    ++summary_.tool_calls;
    AppendTool(data.StringAt("toolName"), data.Find("arguments"), "", entries);
  } else if (type == "tool.execution_complete" && !data.BooleanAt("success", true)) {
    AppendFailure(ObjectAt(data, "error").StringAt("message"), entries);
  }
}

void CopilotDialect::TakeError(const Json& data, Entries* entries) {
  failed_ = true;
  error_ = codec::CutUtf8(data.StringAt("message"), kResultBytesMax);
  if (const int64_t status = CountAt(data, "statusCode"); status > 0) {
    summary_.api_error_status = std::min<int64_t>(status, 999);
  }
  AppendFailure(error_, entries);
}

AgentSummary CopilotDialect::Finish(int exit_status) {
  if (failed_ || exit_code_ != 0) {
    summary_.reason = DescribeModelError(summary_.api_error_status, error_);
  } else if (exit_status != 0) {
    summary_.reason = DescribeStatus(exit_status);
  } else if (!summary_.saw_result) {
    summary_.reason = kNoResult;
  } else {
    summary_.api_error_status = 0;
  }
  summary_.succeeded = summary_.reason.empty();
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakeCopilotDialect() { return std::make_unique<CopilotDialect>(); }

}  // namespace agent
