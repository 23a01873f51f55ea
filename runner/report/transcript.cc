// SPDX-License-Identifier: Apache-2.0
#include "report/transcript.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "report/event_lines.h"

namespace report {
namespace {

using codec::Json;
using StepKind = TranscriptStep::Kind;

constexpr size_t kStreamLineBytesMax = size_t{8} << 20;  // agent::StreamReader's own.
constexpr size_t kStreamBytesMax = size_t{64} << 20;
constexpr size_t kStepsMax = 1000;
constexpr size_t kStepBytesMax = size_t{8} << 10;
constexpr size_t kTitleBytesMax = 300;
constexpr size_t kIdBytesMax = 200;
constexpr size_t kLogBytesMax = size_t{128} << 10;

std::string Cut(std::string_view text, size_t bytes_max = kStepBytesMax) {
  return codec::CutUtf8(text, bytes_max);
}

// The argument that says most about a call.
std::string TellingArgument(const Json& input) {
  constexpr std::array<std::string_view, 8> kTelling = {
      "command", "file_path", "filePath", "path", "pattern", "url", "query", "description"};
  for (std::string_view name : kTelling) {
    const std::string text = input.StringAt(name);
    if (!text.empty()) return text.substr(0, text.find('\n'));
  }
  return {};
}

// "name: value" a line, texts as they are: JSON's escapes are hard to read.
std::string RenderInput(const Json& input) {
  const Json::Object* members = input.object();
  if (members == nullptr) return TextOf(&input);
  std::string out;
  for (const auto& [name, value] : *members) {
    const std::string* text = value.string();
    out += name + ": " + (text != nullptr ? *text : codec::RenderJsonLine(value)) + "\n";
    if (out.size() > kStepBytesMax) break;
  }
  return out;
}

const Json& Member(const Json& object, std::string_view name) {
  static const Json kNothing;
  const Json* member = object.Find(name);
  return member != nullptr ? *member : kNothing;
}

class TranscriptReader {
 public:
  void TakeLine(std::string_view line, int64_t number) {
    number_ = number;
    // pi repeats a message with each of its words.
    constexpr std::string_view kUpdate = R"({"type":"message_update")";
    if (line.empty() || line[0] != '{' || line.starts_with(kUpdate)) return;
    const Result<Json> parsed =
        codec::ParseJson(line, {.bytes_max = kStreamLineBytesMax, .values_max = 200000});
    if (!parsed.ok()) return;
    const Json& event = parsed.value();
    const std::string type = event.StringAt("type");
    const bool goes_on = std::exchange(in_delta_, type == "message");
    const bool nested = !event.StringAt("parent_tool_use_id").empty();
    if (type == "item.started") return NoteStarted(Member(event, "item").StringAt("id"));
    if (type == "item.completed") return TakeItem(Member(event, "item"));
    if (type == "assistant" || type == "user") {
      return TakeBlocks(Member(Member(event, "message"), "content"), type == "assistant", nested);
    }
    if (type == "message_end") return TakePiMessage(Member(event, "message"));
    if (type == "message") return TakeGeminiMessage(event, goes_on);
    if (type == "text") Add({StepKind::kText, "", Cut(Member(event, "part").StringAt("text"))});
    if (type == "tool_use") TakeToolUse(event);
    if (type == "tool_result") {
      TakeResult(event.StringAt("tool_id"), Member(event, "output"),
                 event.StringAt("status") == "error");
    }
  }
  Transcript Take() { return std::move(transcript_); }

 private:
  bool Add(TranscriptStep step) {
    const bool empty = step.kind != StepKind::kTool && step.text.empty();
    if (empty) return false;
    if (transcript_.steps.size() >= kStepsMax) {
      ++transcript_.dropped;
      return false;
    }
    if (step.kind != StepKind::kTool || step.line == 0) step.line = number_;
    transcript_.steps.push_back(std::move(step));
    return true;
  }

  // Codex's items begin in a line of their own.
  void NoteStarted(const std::string& id) {
    if (!id.empty() && started_.size() < kStepsMax) started_[Cut(id, kIdBytesMax)] = number_;
  }

  // Claude Code's and pi's lists.
  void TakeBlocks(const Json& content, bool by_agent, bool nested) {
    if (content.array() == nullptr) return;
    for (const Json& block : *content.array()) {
      const std::string type = block.StringAt("type");
      if (!by_agent) {
        if (type != "tool_result") continue;
        TakeResult(block.StringAt("tool_use_id"), Member(block, "content"),
                   block.BooleanAt("is_error"));
      } else if (type == "text") {
        Add({StepKind::kText, "", Cut(block.StringAt("text")), "", false, nested});
      } else if (type == "thinking") {
        Add({StepKind::kThinking, "", Cut(block.StringAt("thinking")), "", false, nested});
      } else if (type == "tool_use" || type == "toolCall") {
        TakeCall(block.StringAt("id"), block.StringAt("name"),
                 Member(block, type == "tool_use" ? "input" : "arguments"), nested);
      }
    }
  }

  void TakeCall(const std::string& id, const std::string& name, const Json& input, bool nested) {
    const std::string argument = TellingArgument(input);
    const std::string title = name + (argument.empty() ? "" : " ") + argument;
    TranscriptStep step{
        StepKind::kTool, Cut(title, kTitleBytesMax), Cut(RenderInput(input)), "", false, nested};
    step.tool = Cut(name, kTitleBytesMax);
    const bool added = Add(std::move(step));
    if (added && !id.empty()) calls_[Cut(id, kIdBytesMax)] = transcript_.steps.size() - 1;
  }

  void TakeResult(const std::string& id, const Json& content, bool failed) {
    const auto call = calls_.find(Cut(id, kIdBytesMax));
    if (call == calls_.end()) return;
    TranscriptStep& step = transcript_.steps[call->second];
    step.result = Cut(TextOf(&content));
    step.failed = failed;
    step.result_line = number_;
  }

  void TakePiMessage(const Json& message) {
    const std::string role = message.StringAt("role");
    if (role == "assistant") TakeBlocks(Member(message, "content"), true, false);
    if (role == "toolResult") {
      TakeResult(message.StringAt("toolCallId"), Member(message, "content"),
                 message.BooleanAt("isError"));
    }
  }

  // Gemini's come in pieces.
  void TakeGeminiMessage(const Json& event, bool goes_on) {
    if (event.StringAt("role") != "assistant") {
      in_delta_ = false;
      return;
    }
    const std::string text = event.StringAt("content");
    if (goes_on && !transcript_.steps.empty()) {
      std::string& before = transcript_.steps.back().text;
      if (before.size() < kStepBytesMax) before = Cut(before + text);
    } else if (!Add({StepKind::kText, "", Cut(text)})) {
      in_delta_ = false;
    }
  }

  // Gemini's, or opencode's with its result.
  void TakeToolUse(const Json& event) {
    if (event.Find("part") == nullptr) {
      return TakeCall(event.StringAt("tool_id"), event.StringAt("tool_name"),
                      Member(event, "parameters"), false);
    }
    const Json& part = Member(event, "part");
    const Json& state = Member(part, "state");
    const std::string id = part.StringAt("callID");
    TakeCall(id, part.StringAt("tool"), Member(state, "input"), false);
    TakeResult(id, Member(state, "output"), state.StringAt("status") == "error");
  }

  void TakeItem(const Json& item) {
    const std::string type = item.StringAt("type");
    if (type == "agent_message") Add({StepKind::kText, "", Cut(item.StringAt("text"))});
    if (type == "reasoning") Add({StepKind::kThinking, "", Cut(item.StringAt("text"))});
    TranscriptStep step{StepKind::kTool};
    step.tool = type;
    const auto started = started_.find(Cut(item.StringAt("id"), kIdBytesMax));
    step.line = started != started_.end() ? started->second : number_;
    step.result_line = number_;
    if (type == "command_execution") {
      const std::string command = item.StringAt("command");
      step.title = Cut(command.substr(0, command.find('\n')), kTitleBytesMax);
      step.text = Cut(command);
      step.result = Cut(item.StringAt("aggregated_output"));
      step.failed = item.IntegerAt("exit_code") != 0;
      Add(std::move(step));
    } else if (type == "file_change" || type == "mcp_tool_call" || type == "web_search") {
      step.title = type;
      step.text = Cut(RenderInput(item));
      step.failed = item.StringAt("status") == "failed";
      Add(std::move(step));
    }
  }

  Transcript transcript_;
  std::map<std::string, size_t> calls_;     // The calls by their ids.
  std::map<std::string, int64_t> started_;  // The lines that items began in, by their ids.
  int64_t number_ = 0;                      // Of the line that is read.
  bool in_delta_ = false;                   // The last event was a piece of the agent's message.
};

}  // namespace

Result<Transcript> ReadTranscript(const std::string& directory) {
  TranscriptReader reader;
  int64_t number = 0;
  TRY(ForEachLine(directory + "/agent.jsonl", kStreamLineBytesMax, kStreamBytesMax,
                  [&](std::string_view line, bool whole) {
                    if (whole) reader.TakeLine(line, number);
                    ++number;
                  })
          .Context("reading the agent's stream"));
  return reader.Take();
}

Result<std::string> ReadLogEnd(const std::string& directory, bool* cut) {
  *cut = false;
  Result<Fd> opened = sys::Open(directory + "/agent.log", O_RDONLY | O_NOFOLLOW);
  if (!opened.ok() && opened.error().code == Code::kNotFound) return std::string();
  const Fd file = TRY(std::move(opened).Context("reading the agent's log"));
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kLogBytesMax));
  if (end < 0 || ::lseek(file.get(), begin, SEEK_SET) < 0) return Errno("lseek");
  std::string text = TRY(sys::ReadAll(file.get(), kLogBytesMax).Context("reading the agent's log"));
  if (begin > 0) {
    *cut = true;
    text.erase(0, std::min(text.size(), text.find('\n') + 1));
  }
  return text;
}

}  // namespace report
