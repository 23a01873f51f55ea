// SPDX-License-Identifier: Apache-2.0
#include "report/transcript.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace report {
namespace {

using Kind = TranscriptStep::Kind;

class Place {
 public:
  Place() { REQUIRE(::mkdtemp(path_) != nullptr); }
  ~Place() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }
  Transcript Read(const std::string& stream) const {
    REQUIRE(sys::WriteFile(path() + "/agent.jsonl", stream).ok());
    return ReadTranscript(path()).value();
  }

 private:
  char path_[32] = "/tmp/transcript-XXXXXX";
};

// The same conversation in the forms that the agents' streams have.
void CheckConversation(const Transcript& transcript, const std::string& title) {
  REQUIRE(transcript.steps.size() == 3);
  CHECK(transcript.steps[0].text == "I will write the file.");
  CHECK(transcript.steps[1].kind == Kind::kTool);
  CHECK(transcript.steps[1].title == title);
  CHECK_FALSE(transcript.steps[1].failed);
  CHECK(transcript.steps[2].text == "Done: wrote hello.txt.");
}

TEST_CASE("Claude Code's messages are steps, and a result stands with its call") {
  const Transcript transcript = Place().Read(
      R"({"type":"system","subtype":"init"}
{"type":"assistant","message":{"content":[{"type":"text","text":"I will write the file."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"hello.txt","content":"a\nb"}}]}}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":"File created"}]}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done: wrote hello.txt."}]}}
{"type":"result","subtype":"success","result":"Done: wrote hello.txt."}
)");
  CheckConversation(transcript, "Write hello.txt");
  CHECK(transcript.steps[1].text == "file_path: hello.txt\ncontent: a\nb\n");
  CHECK(transcript.steps[1].result == "File created");
  CHECK(transcript.steps[1].tool == "Write");
  CHECK(transcript.steps[0].line == 1);
  CHECK(transcript.steps[1].line == 2);
  CHECK(transcript.steps[1].result_line == 3);
}

TEST_CASE("An item of Codex begins with the line that says so") {
  const Transcript transcript = Place().Read(
      R"({"type":"thread.started"}

{"type":"item.started","item":{"id":"1","type":"command_execution","command":"a"}}
{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"a","exit_code":1}}
{"type":"item.completed","item":{"id":"2","type":"file_change","status":"completed"}}
)");
  REQUIRE(transcript.steps.size() == 2);
  CHECK(transcript.steps[0].tool == "command_execution");
  CHECK(transcript.steps[0].line == 2);
  CHECK(transcript.steps[0].result_line == 3);
  CHECK(transcript.steps[0].failed);
  CHECK(transcript.steps[1].line == 4);
  CHECK(transcript.steps[1].result_line == 4);
}

TEST_CASE("A result is found by the first bytes of its call's id") {
  const std::string many(size_t{1} << 20, 'x');
  auto result = [](const std::string& call, const std::string& answered) {
    return Place()
        .Read(R"({"type":"tool_use","tool_id":")" + call + R"(","tool_name":"a"})" + "\n" +
              R"({"type":"tool_result","tool_id":")" + answered + R"(","output":"done"})" + "\n")
        .steps.at(0)
        .result;
  };
  CHECK(result("1" + many, "1" + many) == "done");
  CHECK(result("1" + many, "2" + many).empty());
  CHECK(result(many + "1", many + "2") == "done");
}

TEST_CASE("Codex's items are steps") {
  CheckConversation(
      Place().Read(
          R"({"type":"item.completed","item":{"type":"agent_message","text":"I will write the file."}}
{"type":"item.started","item":{"type":"command_execution","command":"touch hello.txt"}}
{"type":"item.completed","item":{"type":"command_execution","command":"touch hello.txt","aggregated_output":"","exit_code":0}}
{"type":"item.completed","item":{"type":"agent_message","text":"Done: wrote hello.txt."}}
)"),
      "touch hello.txt");
}

TEST_CASE("Gemini's pieces of a message are joined") {
  const Transcript transcript = Place().Read(
      R"({"type":"init","model":"gemini-2.5-pro"}
{"type":"message","role":"user","content":"Create hello.txt"}
{"type":"message","role":"assistant","content":"I will write","delta":true}
{"type":"message","role":"assistant","content":" the file.","delta":true}
{"type":"tool_use","tool_name":"write_file","tool_id":"w1","parameters":{"file_path":"hello.txt"}}
{"type":"tool_result","tool_id":"w1","status":"success","output":"ok"}
{"type":"message","role":"assistant","content":"Done: wrote ","delta":true}
{"type":"message","role":"assistant","content":"hello.txt.","delta":true}
)");
  CheckConversation(transcript, "write_file hello.txt");
  CHECK(transcript.steps[1].result == "ok");
}

TEST_CASE("opencode's parts are steps") {
  const Transcript transcript = Place().Read(
      R"({"type":"text","part":{"type":"text","text":"I will write the file."}}
{"type":"tool_use","part":{"type":"tool","tool":"write","callID":"c","state":{"status":"completed","input":{"filePath":"hello.txt"},"output":"Wrote file."}}}
{"type":"text","part":{"type":"text","text":"Done: wrote hello.txt."}}
)");
  CheckConversation(transcript, "write hello.txt");
  CHECK(transcript.steps[1].result == "Wrote file.");
}

TEST_CASE("pi's messages are steps, its repetitions are not") {
  const Transcript transcript = Place().Read(
      R"({"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"I will"}]}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"I will write the file."},{"type":"toolCall","id":"c","name":"write","arguments":{"path":"hello.txt"}}]}}
{"type":"message_end","message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"wrote"}],"isError":false}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Done: wrote hello.txt."}]}}
{"type":"agent_end","messages":[]}
)");
  CheckConversation(transcript, "write hello.txt");
  CHECK(transcript.steps[1].result == "wrote");
}

TEST_CASE("A failed call says so") {
  const Transcript transcript = Place().Read(
      R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"false"}}]}}
{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","is_error":true,"content":"exit 1"}]}}
{"type":"user","message":{"content":[{"tool_use_id":"unknown","type":"tool_result","content":"x"}]}}
)");
  REQUIRE(transcript.steps.size() == 1);
  CHECK(transcript.steps[0].failed);
  CHECK(transcript.steps[0].result == "exit 1");
}

TEST_CASE("Any bytes whatever are a transcript, and a bounded one") {
  std::string stream = "no json\n{\n{\"type\":7}\n{\"type\":\"assistant\",\"message\":[]}\n\xff\n";
  stream += R"({"type":"tool_use"})" + std::string("\n") + R"({"type":"item.completed"})" + "\n";
  const std::string text(20000, 'x');
  for (int i = 0; i < 1500; ++i) {
    stream +=
        R"({"type":"assistant","message":{"content":[{"type":"text","text":")" + text + "\"}]}}\n";
  }
  const Transcript transcript = Place().Read(stream);
  CHECK(transcript.steps.size() == 1000);
  CHECK(transcript.dropped == 501);
  for (const TranscriptStep& step : transcript.steps) CHECK(step.text.size() <= 8192);
}

TEST_CASE("Of a long log the end is read, from the beginning of a line") {
  const Place place;
  bool cut = true;
  CHECK(ReadLogEnd(place.path(), &cut).value().empty());
  CHECK_FALSE(cut);
  REQUIRE(sys::WriteFile(place.path() + "/agent.log", "one\ntwo\n").ok());
  CHECK(ReadLogEnd(place.path(), &cut).value() == "one\ntwo\n");
  CHECK_FALSE(cut);
  std::string log;
  for (int i = 0; i < 50000; ++i) log += "line " + std::to_string(i) + "\n";
  REQUIRE(sys::WriteFile(place.path() + "/agent.log", log).ok());
  const std::string end = ReadLogEnd(place.path(), &cut).value();
  CHECK(cut);
  CHECK(end.size() <= (128 << 10));
  CHECK(end.starts_with("line "));
  CHECK(end.ends_with("line 49999\n"));
}

}  // namespace
}  // namespace report
