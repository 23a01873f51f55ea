// SPDX-License-Identifier: Apache-2.0
// `opencode run --format json`: step_start, text, reasoning, tool_use, step_finish, error. Seen in
// recordings of 1.18: there is no last event (a step that finished for another reason than its
// tools is the end), every step has its own sums, and the request for a title is in none of them.
#include <algorithm>
#include <utility>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

class OpencodeDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeTool(const Json& part, Entries* entries);
  void TakeStep(const Json& part, Entries* entries);
  void TakeError(const Json& error, Entries* entries);

  AgentSummary summary_;
  bool failed_ = false;
  std::string error_;
};

void OpencodeDialect::TakeLine(std::string_view line, Entries* entries) {
  const std::optional<Json> event = ParseEvent(line, entries);
  if (!event) return;
  const std::string type = event->StringAt("type");
  const Json& part = ObjectAt(*event, "part");
  if (type == "text") {
    const std::string text = part.StringAt("text");
    summary_.result_text = codec::CutUtf8(text, kResultBytesMax);
    AppendLines(text, "", entries);
  }
  if (type == "reasoning") AppendThought(part.StringAt("text"), entries);
  if (type == "tool_use") TakeTool(part, entries);
  if (type == "step_start") failed_ = false;
  if (type == "step_finish") TakeStep(part, entries);
  if (type == "error") TakeError(ObjectAt(*event, "error"), entries);
}

void OpencodeDialect::TakeTool(const Json& part, Entries* entries) {
  ++summary_.tool_calls;
  const Json& state = ObjectAt(part, "state");
  AppendTool(part.StringAt("tool"), state.Find("input"), "", entries);
  if (state.StringAt("status") == "error") AppendFailure(state.StringAt("error"), entries);
}

void OpencodeDialect::TakeStep(const Json& part, Entries* entries) {
  ++summary_.turns;
  const Json& tokens = ObjectAt(part, "tokens");
  const Json& cache = ObjectAt(tokens, "cache");
  summary_.tokens +=
      {CountAt(tokens, "input"), CountAt(tokens, "output") + CountAt(tokens, "reasoning"),
       CountAt(cache, "read"), CountAt(cache, "write")};
  // Without a price of its own it says 0.
  if (const double cost = DollarsAt(part, "cost").value_or(0); cost > 0) {
    summary_.cost_usd = std::min(summary_.cost_usd.value_or(0) + cost, 1e9);
  }
  if (part.StringAt("reason") == "tool-calls") return;
  summary_.saw_result = true;
  entries->Add(EndEntry(summary_, false));
}

void OpencodeDialect::TakeError(const Json& error, Entries* entries) {
  failed_ = true;
  const Json& data = ObjectAt(error, "data");
  const std::string message = data.StringAt("message");
  error_ = codec::CutUtf8(message.empty() ? error.StringAt("name") : message, kResultBytesMax);
  summary_.api_error_status = std::min<int64_t>(CountAt(data, "statusCode"), 999);
  AppendFailure(error_, entries);
}

AgentSummary OpencodeDialect::Finish(int exit_status) {
  if (failed_) {
    if (summary_.api_error_status == 0) summary_.api_error_status = StatusIn(error_);
    summary_.reason = DescribeModelError(summary_.api_error_status, error_);
  } else {
    summary_.api_error_status = 0;
    if (exit_status != 0) {
      summary_.reason = DescribeStatus(exit_status);
    } else if (!summary_.saw_result) {
      summary_.reason = kNoResult;
    }
  }
  summary_.succeeded = summary_.reason.empty();
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakeOpencodeDialect() { return std::make_unique<OpencodeDialect>(); }

}  // namespace agent
