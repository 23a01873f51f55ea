// SPDX-License-Identifier: Apache-2.0
// `gemini -o stream-json`: init, message, tool_use, tool_result, error, result. Seen in recordings
// of 0.61: the text comes in pieces only, `input_tokens` includes what came from the cache, and the
// exit status is that of HTTP modulo 256.
#include <algorithm>
#include <utility>

#include "agent/dialect.h"
#include "agent/event.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

class GeminiDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, Entries* entries) override;
  AgentSummary Finish(int exit_status) override;

 private:
  void TakeMessage(const Json& event, Entries* entries);
  void TakeResult(const Json& event, Entries* entries);
  // The text so far, of which no more comes.
  void EndText(Entries* entries);

  AgentSummary summary_;
  std::string text_;
  std::string status_;
  std::string error_;
};

void GeminiDialect::EndText(Entries* entries) {
  if (text_.empty()) return;
  ++summary_.turns;
  AppendLines(text_, "", entries);
  summary_.result_text = std::exchange(text_, {});
}

void GeminiDialect::TakeLine(std::string_view line, Entries* entries) {
  const std::optional<Json> event = ParseEvent(line, entries);
  if (!event) return;
  const std::string type = event->StringAt("type");
  if (type == "message") return TakeMessage(*event, entries);
  EndText(entries);
  if (type == "init") {
    summary_.model = codec::CutUtf8(event->StringAt("model"), 200);
    entries->Add(LogEntry("gemini, model " + summary_.model));
  } else if (type == "tool_use") {
    ++summary_.tool_calls;
    AppendTool(event->StringAt("tool_name"), event->Find("parameters"), "", entries);
  } else if (type == "tool_result" && event->StringAt("status") == "error") {
    const std::string output = event->StringAt("output");
    AppendFailure(output.empty() ? ObjectAt(*event, "error").StringAt("message") : output, entries);
  } else if (type == "error") {
    error_ = codec::CutUtf8(event->StringAt("message"), kResultBytesMax);
    AppendFailure(error_, entries);
  } else if (type == "result") {
    TakeResult(*event, entries);
  }
}

void GeminiDialect::TakeMessage(const Json& event, Entries* entries) {
  if (event.StringAt("role") != "assistant") return;
  if (!event.BooleanAt("delta")) EndText(entries);
  text_ = codec::CutUtf8(text_ + event.StringAt("content"), kResultBytesMax);
}

void GeminiDialect::TakeResult(const Json& event, Entries* entries) {
  summary_.saw_result = true;
  status_ = codec::CutUtf8(event.StringAt("status"), 100);
  if (status_ != "success") {
    error_ = codec::CutUtf8(ObjectAt(event, "error").StringAt("message"), kResultBytesMax);
  }
  const Json& stats = ObjectAt(event, "stats");
  // Some of its counts are of the whole: what is not input is output, thoughts included.
  const int64_t input = CountAt(stats, "input_tokens");
  const int64_t output =
      std::max(CountAt(stats, "output_tokens"), CountAt(stats, "total_tokens") - input);
  summary_.tokens = WithoutCached(input, output, CountAt(stats, "cached"));
  summary_.tool_calls = std::max(summary_.tool_calls, CountAt(stats, "tool_calls"));
  entries->Add(EndEntry(summary_, status_ != "success"));
}

AgentSummary GeminiDialect::Finish(int exit_status) {
  if (!text_.empty()) summary_.result_text = text_;
  const bool failed = summary_.saw_result && status_ != "success";
  Conclude(failed, error_, exit_status, &summary_);
  if (!failed && exit_status == 41) {
    summary_.reason = "the agent has no valid way to authenticate";
  }
  return summary_;
}

}  // namespace

std::unique_ptr<Dialect> MakeGeminiDialect() { return std::make_unique<GeminiDialect>(); }

}  // namespace agent
