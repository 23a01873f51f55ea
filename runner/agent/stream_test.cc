// SPDX-License-Identifier: Apache-2.0
// The lines are cut down from recordings of Claude Code 2.1.197; whole recordings are read by
// tests/report.
#include "agent/stream.h"

#include <catch2/catch.hpp>

#include "agent/dialect.h"
#include "agent/event.h"

namespace agent {
namespace {

const std::string kInit = R"({"type":"system","subtype":"init","model":"claude-opus-4-8[1m]",)"
                          R"("permissionMode":"bypassPermissions","claude_code_version":"2.1.197"})"
                          "\n";
const std::string kWord =
    R"({"type":"assistant","message":{"id":"msg_1","model":"claude-opus-4-8","content":)"
    R"([{"type":"text","text":"I will write the file."}],"usage":{"input_tokens":1200,)"
    R"("cache_creation_input_tokens":50,"cache_read_input_tokens":300,"output_tokens":1}}})"
    "\n";
const std::string kTool =
    R"({"type":"assistant","message":{"id":"msg_1","model":"claude-opus-4-8","content":)"
    R"([{"type":"tool_use","id":"toolu_1","name":"Write","input":{"file_path":"/ws/hello.txt",)"
    R"("content":"hello\n"}}],"usage":{"input_tokens":1200,"cache_creation_input_tokens":50,)"
    R"("cache_read_input_tokens":300,"output_tokens":1}}})"
    "\n";
const std::string kLastWord =
    R"({"type":"assistant","message":{"id":"msg_2","model":"claude-opus-4-8","content":)"
    R"([{"type":"text","text":"Done: wrote hello.txt."}],"usage":{"input_tokens":1200,)"
    R"("cache_creation_input_tokens":50,"cache_read_input_tokens":300,"output_tokens":40}}})"
    "\n";
const std::string kResult =
    R"({"type":"result","subtype":"success","is_error":false,"api_error_status":null,)"
    R"("num_turns":2,"result":"Done: wrote hello.txt.","total_cost_usd":0.0223875,)"
    R"("usage":{"input_tokens":2400,"cache_creation_input_tokens":100,)"
    R"("cache_read_input_tokens":600,"output_tokens":80},"modelUsage":{"claude-opus-4-8[1m]":)"
    R"({"inputTokens":2400,"outputTokens":80,"cacheReadInputTokens":600,)"
    R"("cacheCreationInputTokens":100,"costUSD":0.02},"claude-haiku":{"inputTokens":1200,)"
    R"("outputTokens":40,"cacheReadInputTokens":300,"cacheCreationInputTokens":50}},)"
    R"("permission_denials":[]})"
    "\n";

TEST_CASE("A claude run gives its log, and side requests count into its tokens") {
  StreamReader reader("claude-code");
  std::vector<std::string> entries = reader.Feed(kInit + kWord + kTool + kLastWord + kResult);
  CHECK(entries == std::vector<std::string>{"claude-code 2.1.197, model claude-opus-4-8[1m]",
                                            "I will write the file.", "> Write /ws/hello.txt",
                                            "Done: wrote hello.txt.",
                                            "done after 2 turns, 1 tool call, $0.0224"});
  AgentSummary summary = reader.Finish(0);
  CHECK(summary.succeeded);
  CHECK(summary.saw_result);
  CHECK(summary.model == "claude-opus-4-8[1m]");
  CHECK(summary.agent_version == "2.1.197");
  CHECK(summary.turns == 2);
  CHECK(summary.tool_calls == 1);
  CHECK(summary.tokens.input == 3600);
  CHECK(summary.tokens.output == 120);
  CHECK(summary.tokens.cache_read == 900);
  CHECK(summary.tokens.cache_write == 150);
  CHECK(summary.cost_usd == Approx(0.0223875));
  CHECK(summary.result_text == "Done: wrote hello.txt.");
}

TEST_CASE("It does not matter where the stream is cut into pieces") {
  const std::string all = kInit + kWord + kTool + kLastWord + kResult;
  StreamReader whole("claude-code");
  std::vector<std::string> expected = whole.Feed(all);
  StreamReader pieces("claude-code");
  std::vector<std::string> entries;
  for (char c : all) {
    for (std::string& entry : pieces.Feed(std::string_view(&c, 1))) entries.push_back(entry);
  }
  CHECK(entries == expected);
  CHECK(pieces.Finish(0).tokens.input == 3600);
}

TEST_CASE("A cancelled claude run has the sums of its messages, each counted once") {
  StreamReader reader("claude-code");
  reader.Feed(kInit + kWord + kTool + kLastWord + R"({"type":"assist)");
  AgentSummary summary = reader.Finish(143);
  CHECK_FALSE(summary.succeeded);
  CHECK_FALSE(summary.saw_result);
  CHECK(summary.reason == "the agent was killed by signal 15");
  CHECK(summary.turns == 2);
  CHECK(summary.tokens.input == 2400);
  CHECK(summary.tokens.output == 41);
  CHECK(summary.tokens.cache_read == 600);
  CHECK(summary.result_text == "Done: wrote hello.txt.");
  CHECK_FALSE(summary.cost_usd);
}

std::string ResultEvent(const std::string& members) {
  return R"({"type":"result","num_turns":1,)" + members + "}\n";
}

TEST_CASE("A claude result that says error is no success, whatever its subtype and status") {
  StreamReader reader("claude-code");
  reader.Feed(ResultEvent(R"("subtype":"success","is_error":true,"api_error_status":401,)"
                          R"("result":"Failed to authenticate.")"));
  AgentSummary summary = reader.Finish(0);
  CHECK_FALSE(summary.succeeded);
  CHECK(summary.reason == "the model responded with 401: Failed to authenticate.");
  CHECK(summary.api_error_status == 401);
}

TEST_CASE("Claude's own limits are named") {
  StreamReader budget("claude-code");
  budget.Feed(ResultEvent(R"("subtype":"error_max_budget_usd","is_error":true)"));
  CHECK(budget.Finish(1).reason == "the agent reached its own budget");
  StreamReader turns("claude-code");
  turns.Feed(ResultEvent(R"("subtype":"error_max_turns","is_error":true)"));
  CHECK(turns.Finish(1).reason == "the agent reached its turn limit");
}

TEST_CASE("A claude run whose every call its own permissions refused is no success") {
  const std::string denied =
      ResultEvent(R"("subtype":"success","is_error":false,"result":"Done.","permission_denials":)"
                  R"([{"tool_name":"Write","tool_input":{"file_path":"/ws/a","content":"x"}}])");
  StreamReader all("claude-code");
  all.Feed(kTool + denied);
  AgentSummary summary = all.Finish(0);
  CHECK_FALSE(summary.succeeded);
  CHECK(summary.reason == "the agent's own permission settings denied Write /ws/a");

  StreamReader some("claude-code");
  some.Feed(kTool + kTool + denied);
  CHECK(some.Finish(0).succeeded);
  CHECK(some.Finish(0).permission_denials == std::vector<std::string>{"Write /ws/a"});
}

TEST_CASE("A claude run without a result, or with a status, is no success") {
  StreamReader silent("claude-code");
  CHECK(silent.Finish(0).reason == "the agent ended without a result");
  StreamReader failed("claude-code");
  failed.Feed(kResult);
  CHECK(failed.Finish(1).reason == "the agent ended with status 1");
  StreamReader retried("claude-code");
  std::vector<std::string> entries =
      retried.Feed(R"({"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,)"
                   R"("error_status":529,"error":"overloaded"})"
                   "\n");
  CHECK(entries ==
        std::vector<std::string>{"the model returned an error: 529 overloaded, retry 3 of 10"});
  CHECK(retried.Finish(1).reason ==
        "the agent ended with status 1; the model returned an error: 529 overloaded");
}

TEST_CASE("A failed tool is logged; a successful one is not") {
  StreamReader reader("claude-code");
  std::vector<std::string> entries = reader.Feed(
      R"({"type":"user","message":{"content":[{"type":"tool_result","content":"all fine"}]}})"
      "\n"
      R"({"type":"user","message":{"content":[{"type":"tool_result","is_error":true,)"
      R"("content":[{"type":"text","text":"no such\n::error::file"}]}]}})"
      "\n");
  CHECK(entries == std::vector<std::string>{"  failed: no such ::error::file"});
}

TEST_CASE("What claude says cannot command the log reader nor the terminal") {
  StreamReader reader("claude-code");
  std::vector<std::string> entries = reader.Feed(
      R"({"type":"assistant","message":{"content":[{"type":"text",)"
      R"("text":"a\n::add-mask::x\n\u001b[2J##[error]y\n\nghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},)"
      R"({"type":"tool_use","name":"::set-env","input":{"command":"\u202e\u001b]0;t\u0007x"}}]}})"
      "\n");
  CHECK(entries == std::vector<std::string>{"a", "::add-mask::x", "##[error]y",
                                            "[redacted:github-token]", "> ::set-env \\u{202e}x"});
}

TEST_CASE("Any bytes are taken, and odd values are not believed") {
  StreamReader reader("claude-code");
  std::vector<std::string> entries = reader.Feed("Warning: \xff\x1b[31mx\n\n[1]\nnull\n{\n");
  CHECK(entries == std::vector<std::string>{"Warning: \xff\x1b[31mx", "[1]", "null", "{"});
  for (const char* line :
       {R"({"type":1})", R"({"type":"assistant"})", R"({"type":"assistant","message":3})",
        R"({"type":"assistant","message":{"content":"x","usage":[]}})",
        R"({"type":"user","message":{"content":[1,{"type":"tool_result","is_error":"x"}]}})",
        R"({"type":"system","subtype":[]})"}) {
    CHECK(reader.Feed(std::string(line) + "\n").empty());
  }
  reader.Feed(
      std::string(
          R"({"type":"result","is_error":"no","num_turns":-5,"total_cost_usd":"x","modelUsage":)"
          R"({"a":{"inputTokens":9223372036854775807},"b":{"inputTokens":-1},)"
          R"("c":{"inputTokens":9223372036854775807},"d":7},"result":[]})") +
      "\n");
  AgentSummary summary = reader.Finish(0);
  CHECK(summary.turns == 0);
  CHECK(summary.tokens.input == int64_t{1} << 50);
  CHECK(summary.result_text.empty());
  CHECK_FALSE(summary.cost_usd);
}

TEST_CASE("A command's lines pass through, the last one also without a line end") {
  StreamReader reader("command");
  CHECK(reader.Feed("one\n::warning::two\nthr") ==
        std::vector<std::string>{"one", "::warning::two"});
  CHECK(reader.Close() == std::vector<std::string>{"thr"});
  CHECK(reader.Close().empty());
  CHECK(reader.Finish(0).succeeded);
  CHECK(StreamReader("command").Finish(3).reason == "the agent ended with status 3");
  CHECK(StreamReader("command").Finish(137).reason == "the agent was killed by signal 9");
}

// Recorded of Codex 0.169.0 in this sandbox, read-only and workspace-write, and without its own.
TEST_CASE("What Codex's own sandbox blocked is seen on either stream, and not in what it quotes") {
  auto blocked = [](const std::string& line) {
    StreamReader reader("command");
    reader.Feed(line + "\n");
    const AgentSummary summary = reader.Finish(0);
    CHECK(summary.succeeded);
    return summary.blocked;
  };
  CHECK_FALSE(
      blocked("2026-11-23T01:41:24.944950Z ERROR codex_core::tools::router: error=patch rejected: "
              "writing is blocked by read-only sandbox; rejected by user approval settings")
          .empty());
  const std::string change =
      R"({"type":"item.completed","item":{"id":"item_2","type":"file_change","changes":)"
      R"([{"path":"/c/w.txt","kind":"add"}],"status":"STATUS"}})";
  auto with = [&](const std::string& status) {
    std::string line = change;
    return line.replace(line.find("STATUS"), 6, status);
  };
  CHECK_FALSE(blocked(with("failed")).empty());
  CHECK_FALSE(blocked(with("declined")).empty());
  CHECK(blocked(with("completed")).empty());
  CHECK(blocked("writing is blocked by read-only sandbox").empty());
  CHECK(
      blocked(R"({"type":"item.completed","item":{"type":"agent_message","text":"\"file_change\",)"
              R"( \"status\":\"failed\""}})")
          .empty());
}

TEST_CASE("An event without end is skipped in bounded memory, and reading goes on behind it") {
  StreamReader reader("claude-code");
  const std::string megabyte(size_t{1} << 20, 'x');
  size_t notices = 0;
  for (int i = 0; i < 20; ++i) notices += reader.Feed(megabyte).size();
  CHECK(notices == 1);
  CHECK(reader.TakeUnfinished().empty());
  CHECK(reader.Feed("\nnext\n") == std::vector<std::string>{"next"});
}

TEST_CASE("pi's last event ends the run, though it is too long to be read") {
  StreamReader reader("pi");
  reader.Feed(
      R"({"type":"agent_start"})"
      "\n"
      R"({"type":"message_end","message":{"role":"assistant","stopReason":"stop","content":[]}})"
      "\n"
      R"({"type":"agent_end","messages":[")");
  const std::string megabyte(size_t{1} << 20, 'x');
  for (int i = 0; i < 9; ++i) reader.Feed(megabyte);
  reader.Feed("\"]}\n");
  CHECK(reader.Finish(0).succeeded);
}

TEST_CASE("Half a surrogate pair, where an agent cut a text, loses no event") {
  for (const char* cut :
       {R"(\ud83d)", R"(\uDE00 \\ud83d \ud83d\ude00 \ud83d)", R"(\ud83d\ud83d\ude00\\)"}) {
    CAPTURE(cut);
    StreamReader reader("claude-code");
    reader.Feed(
        ResultEvent(R"("subtype":"success","is_error":false,"x":")" + std::string(cut) + "\""));
    CHECK(reader.Finish(0).succeeded);
  }
  StreamReader reader("claude-code");
  CHECK(reader.Feed("{\"type\":\"result\",\"x\":\"\\ud83\"}\n").size() ==
        1);  // Not JSON: as it stands.
}

TEST_CASE("RepeatFilter leaves out pi's updates, wherever the stream is cut, and nothing else") {
  const std::string kept =
      "{\"type\":\"message_end\"}\n\n{\"type\":\"mess\n "
      "{\"type\":\"message_update\"}\n{\"type\":\"message_updated\"}\n{";
  const std::string updates =
      "{\"type\":\"message_update\",\"a\":1}\n{\"type\":\"message_update\"\n";
  for (size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
    RepeatFilter filter("pi");
    std::string left;
    const std::string all = updates + "plain\n" + updates + updates + kept + "x";
    for (size_t at = 0; at < all.size(); at += piece)
      left += filter.Feed(std::string_view(all).substr(at, piece));
    CHECK(left == "plain\n" + kept + "x");
  }
  RepeatFilter none("claude-code");
  CHECK(none.Feed(updates) == updates);
}

// Returns an event with `texts` texts of `text`.
std::string TextsEvent(int texts, const std::string& text) {
  std::string line = R"({"type":"assistant","message":{"content":[)";
  for (int i = 0; i < texts; ++i) {
    line += (i > 0 ? R"(,{"type":"text","text":")" : R"({"type":"text","text":")") + text + "\"}";
  }
  return line + "]}}\n";
}

TEST_CASE("The entries of events take no more bytes than the events") {
  std::string control;
  for (int i = 0; i < 1000; ++i) control += "\xc2\x80";  // Six bytes where it is made visible.
  StreamReader reader("claude-code");
  size_t printed = 0;
  size_t given = 0;
  size_t notes = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string line = TextsEvent(100, control);
    printed += line.size();
    for (const std::string& entry : reader.Feed(line)) {
      given += entry.size() + 1;
      if (entry.starts_with("(what would take more")) ++notes;
    }
  }
  CHECK(given > printed / 2);
  CHECK(given <= printed + (size_t{65} << 10));
  CHECK(notes >= 1);
  CHECK(notes <= 10);
  // Whatever was left out: the next event has its room.
  CHECK(reader.Feed(kWord) == std::vector<std::string>{"I will write the file."});

  StreamReader letters("claude-code");
  CHECK(letters.Feed(TextsEvent(1000, std::string(2000, 'a'))).size() == 1000);
}

TEST_CASE("Ids and names that an agent makes long are kept in part") {
  auto turns = [](const std::string& first, const std::string& second) {
    StreamReader reader("claude-code");
    for (const std::string& id : {first, second}) {
      reader.Feed(R"({"type":"assistant","message":{"id":")" + id +
                  R"(","usage":{"input_tokens":1}}})" + "\n");
    }
    return reader.Finish(0).turns;
  };
  const std::string many(size_t{1} << 20, 'x');
  CHECK(turns(many + "1", many + "2") == 1);
  CHECK(turns("1" + many, "2" + many) == 2);

  StreamReader reader("claude-code");
  reader.Feed(ResultEvent(R"("subtype":"success","is_error":false,"permission_denials":)"
                          R"([{"tool_name":")" +
                          many + R"(","tool_input":{"file_path":"/a"}}])"));
  const std::vector<std::string> denials = reader.Finish(0).permission_denials;
  REQUIRE(denials.size() == 1);
  CHECK(denials[0].size() < 300);
  CHECK(denials[0].ends_with(" /a"));
}

TEST_CASE("A command's line without end is given in pieces, whole words each, as it comes") {
  StreamReader reader("command");
  std::string text;
  while (text.size() < 20 * StreamReader::kWaitingBytesMax) text += "word-of-some-length ";
  std::string given;
  size_t pieces = 0;
  for (size_t at = 0; at < text.size(); at += 65536) {
    CHECK(reader.Feed(std::string_view(text).substr(at, 65536)).empty());
    const std::string piece = reader.TakeUnfinished();
    pieces += piece.empty() ? 0 : 1;
    CHECK(piece.size() <= StreamReader::kWaitingBytesMax + 65536);
    CHECK((piece.empty() || piece.back() == ' '));
    given += piece;
  }
  CHECK(pieces >= 10);
  const std::vector<std::string> rest = reader.Feed("end\nnext\n");
  REQUIRE(rest.size() == 2);
  CHECK(given + rest[0] == text + "end");
  CHECK(rest[1] == "next");
  CHECK(reader.TakeUnfinished().empty());
}

AgentSummary Read(std::string_view stream, const std::string& lines, int exit_status) {
  StreamReader reader(stream);
  reader.Feed(lines);
  return reader.Finish(exit_status);
}

TEST_CASE("An agent that is ended while it waits has the sums of what it said until then") {
  const AgentSummary pi =
      Read("pi",
           R"({"type":"agent_start"})"
           "\n"
           R"({"type":"message_end","message":{"role":"assistant","stopReason":"toolUse","usage":)"
           R"({"input":10,"output":4,"cacheRead":3,"cacheWrite":2}}})"
           "\n",
           143);
  CHECK(pi.reason == "the agent was killed by signal 15");
  CHECK_FALSE(pi.saw_result);
  CHECK(pi.tokens.input == 10);
  CHECK(pi.tokens.cache_write == 2);
  const AgentSummary opencode =
      Read("opencode",
           R"({"type":"step_finish","part":{"reason":"tool-calls","tokens":{"input":10,"output":4,)"
           R"("reasoning":5,"cache":{"read":3,"write":2}},"cost":0}})"
           "\n",
           0);
  CHECK(opencode.reason == "the agent ended without a result");
  CHECK(opencode.tokens.output == 9);
  CHECK_FALSE(opencode.cost_usd);
  for (const std::string_view stream : StreamNames()) {
    if (stream == "plain") continue;
    CHECK(Read(stream, "", 0).reason == "the agent ended without a result");
    CHECK(Read(stream, "\n{}\n[1]\nnot json\n", 3).reason == "the agent ended with status 3");
  }
}

TEST_CASE("An error that an agent recovered from does not count") {
  const AgentSummary opencode =
      Read("opencode",
           R"({"type":"error","error":{"name":"APIError","data":{"statusCode":500}}})"
           "\n"
           R"({"type":"step_start"})"
           "\n"
           R"({"type":"step_finish","part":{"reason":"stop"}})"
           "\n",
           0);
  CHECK(opencode.succeeded);
  CHECK(opencode.api_error_status == 0);
  const AgentSummary codex = Read("codex",
                                  R"({"type":"error","message":"Reconnecting... 1/5"})"
                                  "\n"
                                  R"({"type":"turn.completed","usage":{}})"
                                  "\n",
                                  0);
  CHECK(codex.succeeded);
  CHECK(codex.retries == 1);
}

TEST_CASE("Codex's own sandbox is noticed in its events and in its log") {
  const std::string end = "\n{\"type\":\"turn.completed\",\"usage\":{}}\n";
  const std::string change =
      R"({"type":"item.completed","item":{"type":"file_change","status":"declined","changes":[]}})";
  CHECK(Read("codex", change + end, 0).blocked == "a file change was declined");
  CHECK(Read("codex", "x ERROR codex_core::exec: bwrap: No permissions" + end, 0)
            .blocked.starts_with("ERROR codex_core::exec: bwrap:"));
  CHECK(Read("codex", end, 0).blocked.empty());
}

TEST_CASE("What a model thought is in the log, marked") {
  StreamReader codex("codex");
  CHECK(codex.Feed(R"({"type":"item.completed","item":{"type":"reasoning","text":"Hm.\n\nSo."}})"
                   "\n") == std::vector<std::string>{"~ Hm.", "~ So."});
  StreamReader claude("claude-code");
  CHECK(claude.Feed(R"({"type":"assistant","message":{"content":[{"type":"thinking",)"
                    R"("thinking":"Hm."}]}})"
                    "\n") == std::vector<std::string>{"~ Hm."});
}

TEST_CASE("Every agent's figures have bounds, and their sums too") {
  const std::string huge = "9223372036854775807";
  const std::string step = R"({"type":"step_finish","part":{"reason":"stop","tokens":{"input":)" +
                           huge + R"(,"output":)" + huge + R"(,"reasoning":)" + huge + "}}}\n";
  const std::string turn = R"({"type":"turn.completed","usage":{"input_tokens":)" + huge +
                           R"(,"cached_input_tokens":-5,"output_tokens":)" + huge + "}}\n";
  for (const auto& [stream, line] : {std::pair{"opencode", step}, {"codex", turn}}) {
    const AgentSummary summary = Read(stream, line + line + line, 0);
    CHECK(summary.tokens.input == int64_t{1} << 50);
    CHECK(summary.tokens.output == int64_t{1} << 50);
    CHECK(summary.tokens.cache_read == 0);
  }
}

TEST_CASE("An HTTP status is found in an error's message, and in no other number") {
  CHECK(StatusIn("400 scripted bad request") == 400);
  CHECK(StatusIn("unexpected status 401 Unauthorized") == 401);
  CHECK(StatusIn(R"([API Error: {"error":{"code":529,"message":"x"}}])") == 529);
  CHECK(StatusIn("failed (HTTP 429).") == 429);
  CHECK(StatusIn("") == 0);
  CHECK(StatusIn("4000 tokens") == 0);
  CHECK(StatusIn("status 200, then status 503") == 503);
  CHECK(StatusIn("in 500 ms") == 0);
  CHECK(StatusIn("status 50") == 0);
}

}  // namespace
}  // namespace agent
