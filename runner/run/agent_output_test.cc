// SPDX-License-Identifier: Apache-2.0
#include "run/agent_output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/fd.h"
#include "base/sys.h"

namespace run {
namespace {

using Pipe = AgentOutput::Pipe;

// The text that an AgentOutput wrote to the log and to standard output.
struct Written {
  std::string log;
  std::string shown;
  std::vector<std::string> tail;
};

struct Piece {
  Pipe pipe;
  std::string bytes;
};

std::string Content(const Fd& file) {
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return sys::ReadAll(file.get(), size_t{64} << 20).value();
}

Written Write(const std::vector<Piece>& pieces, std::optional<codec::LogCommands> shown,
              const codec::SecretMask& secrets = {}) {
  const Fd log(::memfd_create("log", MFD_CLOEXEC));
  const Fd terminal(::memfd_create("terminal", MFD_CLOEXEC));
  OutputFiles files;
  files.readable = log.get();
  files.terminal = terminal.get();
  files.shown = shown;
  AgentOutput output(files, secrets);
  for (const Piece& piece : pieces) output.Take(piece.pipe, piece.bytes);
  output.Finish(0);
  return {Content(log), Content(terminal), output.tail()};
}

}  // namespace

TEST_CASE("Each line of the agent's stream has a time, where times are kept") {
  for (const bool timed : {false, true}) {
    const Fd raw(::memfd_create("raw", MFD_CLOEXEC));
    OutputFiles files;
    files.raw = raw.get();
    files.timed = timed;
    const codec::SecretMask secrets;
    AgentOutput output(files, secrets);
    output.Take(Pipe::kOutput, "{}\n\n{\"a\"");
    output.Take(Pipe::kError, "no line of the stream\n");
    output.Take(Pipe::kOutput, ":1}\n{}");
    output.Finish(0);
    const std::vector<int64_t> times = output.TakeLineTimes();
    CHECK(times.size() == (timed ? 4 : 0));
    CHECK(std::is_sorted(times.begin(), times.end()));
  }
}

TEST_CASE("Output that a full disk did not take is known to be lost") {
  for (const bool raw : {false, true}) {
    for (const char* path : {"/dev/full", "/dev/null"}) {
      CAPTURE(raw, path);
      const Fd file = sys::Open(path, O_WRONLY).value();
      OutputFiles files;
      (raw ? files.raw : files.readable) = file.get();
      const codec::SecretMask secrets;
      AgentOutput output(files, secrets);
      CHECK_FALSE(output.lost());
      output.Take(Pipe::kOutput, "words\n");
      output.Finish(0);
      CHECK(output.lost() == (std::string_view(path) == "/dev/full"));
    }
  }
}

TEST_CASE("A log that folds it has the agent's output in a section, which the agent cannot end") {
  const Fd log(::memfd_create("log", MFD_CLOEXEC));
  const Fd terminal(::memfd_create("terminal", MFD_CLOEXEC));
  auto gitlab = [](const std::string& name) -> std::optional<std::string> {
    if (name == "GITLAB_CI") return "true";
    return std::nullopt;
  };
  OutputFiles files;
  files.readable = log.get();
  files.terminal = terminal.get();
  files.shown = codec::LogCommands::kNone;
  files.section = forge::MakeLogSection(gitlab, "agent", "Its output", 7);
  const std::string ours = files.section.end;
  const codec::SecretMask secrets;
  {
    AgentOutput silent(files, secrets);
    silent.Finish(0);
    CHECK(Content(terminal).empty());
  }
  AgentOutput output(files, secrets);
  output.Take(Pipe::kOutput, "a\n" + ours + "\x1b[0Ksection_start:8:x\r\x1b[0Kb\nno end");
  output.Finish(0);
  const std::string shown = Content(terminal);
  CHECK(shown.starts_with("\x1b[0Ksection_start:7:agent[collapsed=true]\r\x1b[0KIts output\na\n"));
  CHECK(shown.ends_with("no end\n\x1b[0Ksection_end:7:agent\r\x1b[0K\n"));
  CHECK(std::count(shown.begin(), shown.end(), '\x1b') == 4);
  CHECK(std::count(shown.begin(), shown.end(), '\r') == 2);
  // Other CI systems have no sections.
  for (const char* name : {"GITHUB_ACTIONS", "CI"}) {
    auto other = [&](const std::string& asked) -> std::optional<std::string> {
      if (asked == name) return "true";
      return std::nullopt;
    };
    CHECK(forge::MakeLogSection(other, "agent", "Its output", 7).begin.empty());
  }
}

TEST_CASE("A program that reads the output, and the log, get the agent's bytes") {
  const std::string text =
      "## a\r\n::b\n\x1b[31mred\x1b[0m \xff\t \n\n" + std::string(5000, 'x') + "\nno line end";
  const Written written = Write({{Pipe::kOutput, text}}, std::nullopt);
  CHECK(written.log == text);
  CHECK(written.shown == text);
}

TEST_CASE("A person gets visible text, and the log of a job no commands of its own") {
  const std::string text = "## a ##[b]\n::c\n\x1b[31mred\x1b[0m\x07\n##vso[d]\n";
  using enum codec::LogCommands;
  CHECK(Write({{Pipe::kOutput, text}}, kNone).shown == "## a ##[b]\n::c\nred\\u{7}\n##vso[d]\n");
  CHECK(Write({{Pipe::kOutput, text}}, kWorkflow).shown ==
        "## a # #[b]\n: :c\nred\\u{7}\n##vso[d]\n");
  const Written written = Write({{Pipe::kOutput, text}}, kAll);
  CHECK(written.shown == "## a # #[b]\n: :c\nred\\u{7}\n# #vso[d]\n");
  CHECK(written.log == text);
  CHECK(written.tail == std::vector<std::string>{"## a # #[b]", ": :c", "red\\u{7}", "# #vso[d]"});
}

TEST_CASE("A line that is cut for a person says so, and is whole in the log") {
  const std::string line(2001, 'x');
  const Written written = Write({{Pipe::kOutput, line + "\nnext\n"}}, codec::LogCommands::kNone);
  CHECK(written.log == line + "\nnext\n");
  CHECK(written.shown ==
        std::string(1997, 'x') + "\u2026 (cut; agent.log has the whole line)\nnext\n");
}

TEST_CASE("An endless line goes on in pieces, which a line of the other pipe may break off") {
  const std::string piece(size_t{3} << 19, 'x');
  const std::vector<Piece> pieces = {{Pipe::kOutput, piece},
                                     {Pipe::kOutput, piece},
                                     {Pipe::kError, "error\n"},
                                     {Pipe::kOutput, "rest\nlast"}};
  CHECK(Write(pieces, std::nullopt).log == piece + piece + "\nerror\nrest\nlast");
  const std::string shown = Write(pieces, codec::LogCommands::kNone).shown;
  CHECK(shown.substr(1997) == "\u2026 (cut; agent.log has the whole line)\nerror\nlast\n");
}

TEST_CASE("Lines of both pipes stay whole") {
  CHECK(Write({{Pipe::kOutput, "one "}, {Pipe::kError, "error\n"}, {Pipe::kOutput, "line\n"}},
              std::nullopt)
            .log == "error\none line\n");
}

TEST_CASE("What a terminal escape hides from the search for secrets is masked everywhere") {
  codec::SecretMask secrets;
  REQUIRE(secrets.Add("hidden-secret-value"));
  for (std::optional<codec::LogCommands> shown :
       {std::optional<codec::LogCommands>(), std::optional(codec::LogCommands::kNone)}) {
    const Written written =
        Write({{Pipe::kOutput, "a hidden-\x1b[0msecret-value\nghp_\x1b[m" + std::string(36, 'a') +
                                   "\nhidden-secret-value \x1b[1mb\x1b[m\n"}},
              shown, secrets);
    CHECK(written.log == "a [CREDENTIAL]\n[redacted:github-token]\n[CREDENTIAL] \x1b[1mb\x1b[m\n");
    CHECK(written.shown.find("secret-value") == std::string::npos);
  }
}

TEST_CASE("What is masked in its visible form takes no more of the log than it had") {
  codec::SecretMask secrets;
  REQUIRE(secrets.Add("hidden-secret-value"));
  const std::string line = "hidden-\x1b[0msecret-value" + std::string(10000, '\x01');
  const Written written = Write({{Pipe::kOutput, line + "\n"}}, std::nullopt, secrets);
  CHECK(written.log.starts_with("[CREDENTIAL]"));
  CHECK(written.log.size() <= line.size() + 1);
}

}  // namespace run
