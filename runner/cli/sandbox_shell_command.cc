// SPDX-License-Identifier: Apache-2.0
// `agentic-ci sandbox exec` and `sandbox shell`: what runs commands in a sandbox.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "cli/output.h"
#include "cli/sandbox_command.h"
#include "codec/data/json.h"
#include "codec/text/quantity.h"
#include "report/denials.h"
#include "report/terminal/request_lines.h"
#include "run/agent_output.h"
#include "serve/result_json.h"
#include "session/client.h"
#include "session/command_output.h"
#include "session/shell.h"
#include "session/terminal.h"
#include "watch/lines.h"

namespace cli {
namespace {

// Returns the script on the command line, or else the one on standard input.
Result<std::string> ReadScript(const Arguments& arguments) {
  if (!arguments.command.empty()) return session::QuoteWords(arguments.command);
  return sys::ReadAll(STDIN_FILENO, session::kScriptBytesMax).Context("reading the script");
}

Result<int64_t> ReadTimeout(const Arguments& arguments) {
  std::string text = arguments.Get("timeout");
  if (text.empty()) return int64_t{0};
  constexpr int64_t kThousand = 1000;
  int64_t seconds = TRY(codec::ParseDuration(text).Context("--timeout"));
  if (seconds == 0) return Usage("--timeout: a command needs a time limit", "--timeout 20m");
  return seconds * kThousand;
}

// Returns how much of `text` is printed next: no character is cut, and what a CI system takes for a
// command ("##word[") only before its second sign.
size_t NextPiece(std::string_view text) {
  constexpr size_t kPieceBytes = size_t{64} << 10;
  constexpr size_t kCharacterBytesMax = 4;
  constexpr size_t kWordBytesMax = 64;
  if (text.size() <= kPieceBytes) return text.size();
  size_t end = kPieceBytes;
  for (size_t back = 1; back < kCharacterBytesMax; ++back) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) break;
    --end;
  }
  size_t word = end;
  while (end - word < kWordBytesMax && ascii::IsAlpha(text[word - 1])) --word;
  return text[word - 1] == '#' ? word - 1 : end;
}

// Prints the inside of a JSON string piece by piece: escaped, it may be six times as large.
Status PrintEscaped(std::string_view text) {
  constexpr std::string_view kEnd = "\"\n";
  while (!text.empty()) {
    const size_t size = NextPiece(text);
    const std::string quoted = codec::RenderJson(codec::Json(text.substr(0, size)));
    std::string_view inside(quoted);
    inside.remove_prefix(1);
    inside.remove_suffix(kEnd.size());
    if (inside.starts_with('#')) {
      TRY(Print("\\u0023"));
      inside.remove_prefix(1);
    }
    TRY(Print(inside));
    text.remove_prefix(size);
  }
  return Ok();
}

Status PrintResult(const session::CommandResult& result, std::string_view output,
                   std::string_view error) {
  const std::string whole = codec::RenderJson(serve::JsonOf(result, serve::Written{}));
  std::string_view rest = whole;
  using Written = std::pair<std::string_view, std::string_view>;
  for (auto [key, text] : {Written("\"stdout\": \"", output), Written("\"stderr\": \"", error)}) {
    const size_t end = rest.find(key) + key.size();  // In a value, quotes are escaped.
    TRY(Print(rest.substr(0, end)));
    TRY(PrintEscaped(text));
    rest.remove_prefix(end);
  }
  return Print(rest);
}

constexpr std::string_view kShellDoc =
    "Open an interactive shell in a sandbox. It has a terminal of the sandbox's own: job control, "
    "window sizes and full-screen programs work. It starts in the directory and with the exported "
    "variables of the sandbox's shell, and ends with everything it started if this command is "
    "killed. Lines that begin with `%` are commands to agentic-ci; `%help` lists them. Other "
    "commands of the sandbox wait meanwhile. The exit status is the shell's; 75: busy.";

constexpr std::chrono::seconds kLimitsTime{30};

// Carries out a command in a sandbox's shell, given the sandbox's name, and the word behind the
// command, or nothing.
using Carried = Status (*)(const std::string& name, const std::string& word);

struct LineCommand {
  std::string_view name;
  std::string_view operand;  // The operand as its usage line shows it; empty if it takes none.
  std::string_view doc;
  Carried carry_out;
  bool replaces;  // The shell's sandbox ends with it.
};

Status PrintDifference(const std::string& name, const std::string&) {
  session::Place place = TRY(session::Place::Open());
  session::Diff diff = TRY(session::AskDiff(place, name));
  return PrintLines(diff.patch.empty() ? "nothing has changed\n" : diff.patch);
}

Status PrintNetwork(const std::string& name, const std::string&) {
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(name));
  report::DenialList list = TRY(report::ReadDenials(facts.report_dir));
  std::string lines;
  for (const report::RequestEntry& entry : report::RenderRequests(list, true)) lines += entry.text;
  return Print(lines.empty() ? "no requests\n" : lines);
}

Status PrintLimits(const std::string& name, const std::string&) {
  session::Place place = TRY(session::Place::Open());
  session::SandboxState state = TRY(session::AskState(place, name, Deadline::After(kLimitsTime)));
  std::string lines;
  for (const session::LimitUse& use : state.limits) lines += watch::RenderLimit(use) + "\n";
  return Print(lines + "time left: " + std::to_string(state.seconds_left) + " s\n");
}

Status TakeSnapshot(const std::string& name, const std::string& word) {
  Arguments arguments;
  arguments.operands = {name};
  if (!word.empty()) arguments.values["tag"] = {word};
  TRY(SandboxSnapshotCommand(arguments));
  return Ok();
}

Status RestoreSnapshot(const std::string& name, const std::string& word) {
  if (word.empty()) return Usage("the name of a snapshot is missing", "%restore NAME");
  Arguments arguments;
  arguments.operands = {name, word};
  TRY(SandboxRestoreCommand(arguments));
  return Ok();
}

Status ResetSandbox(const std::string& name, const std::string&) {
  session::Place place = TRY(session::Place::Open());
  TRY(session::Reset(place, name));
  return Ok();
}

Status PrintLineHelp(const std::string&, const std::string&);

constexpr LineCommand kLineCommands[] = {
    {"%diff", "", "what has changed in the checkout", PrintDifference, false},
    {"%net", "", "requests that were allowed and refused, with what would allow them", PrintNetwork,
     false},
    {"%limits", "", "what is used of each limit, at the most so far", PrintLimits, false},
    {"%snapshot", "[NAME]", "keep what was written, as `sandbox snapshot --tag NAME`", TakeSnapshot,
     false},
    {"%restore", "NAME", "go back to a snapshot, in a new shell", RestoreSnapshot, true},
    {"%reset", "", "discard all that was written, in a new shell", ResetSandbox, true},
    {"%help", "", "this list", PrintLineHelp, false},
};

Status PrintLineHelp(const std::string&, const std::string&) {
  constexpr size_t kColumn = 18;
  std::string lines;
  for (const LineCommand& command : kLineCommands) {
    std::string usage = std::string(command.name) + " " + std::string(command.operand);
    usage.resize(std::max(kColumn, usage.size()), ' ');
    lines += usage + std::string(command.doc) + "\n";
  }
  return PrintLines(lines);
}

std::vector<std::string> LineCommandNames() {
  std::vector<std::string> names;
  for (const LineCommand& command : kLineCommands) names.emplace_back(command.name);
  return names;
}

// Returns true if the sandbox was replaced. Reports an error, and the shell goes on.
bool CarryOutLine(const std::string& sandbox, const std::string& line) {
  size_t space = line.find(' ');
  std::string name = line.substr(0, space);
  size_t from = space == std::string::npos ? space : line.find_first_not_of(' ', space);
  std::string word = from == std::string::npos ? "" : line.substr(from);
  while (word.ends_with(' ')) word.pop_back();
  for (const LineCommand& command : kLineCommands) {
    if (command.name != name) continue;
    bool fits = word.empty() || (!command.operand.empty() && word.find(' ') == std::string::npos);
    std::string usage = name + " " + std::string(command.operand);
    Status done =
        fits ? command.carry_out(sandbox, word) : Status(Usage("unexpected '" + word + "'", usage));
    if (!done.ok()) (void)sys::WriteAll(STDERR_FILENO, RenderError(done.error()));
    return done.ok() && command.replaces;
  }
  return false;
}

Status CheckBackend(const std::string& name) {
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(name));
  TRY(CheckTaken(facts));
  if (facts.backend == "native") return Ok();
  return Error{Code::kUnsupported, "backend " + facts.backend + " has no interactive shells",
               "agentic-ci sandbox exec " + name + " -- PROGRAM"};
}

Result<session::TerminalShell::End> CarryShells(const std::string& name,
                                                const session::RawTerminal& terminal) {
  session::TypedLines typed(LineCommandNames());
  std::string term = sys::Environment("TERM").value_or("");
  for (;;) {
    session::Place place = TRY(session::Place::Open());
    session::TerminalShell shell =
        TRY(session::TerminalShell::Start(place, name, term.empty() ? "dumb" : term));
    session::TerminalShell::End end = TRY(shell.Carry(
        typed, terminal, [&](const std::string& line) { return CarryOutLine(name, line); }));
    if (!end.replaced) return end;
  }
}

}  // namespace

int StatusOf(const session::CommandResult& result) {
  const serve::EndForm& form = serve::FormOf(result.reason);
  return form.warning == nullptr ? result.status : static_cast<int>(form.code);
}

void WarnOfEnd(const session::CommandResult& result, const std::string& sandbox) {
  const serve::EndForm& form = serve::FormOf(result.reason);
  if (form.warning != nullptr) logging::Warn(form.warning, {{"sandbox", sandbox}});
}

Result<int> SandboxExecCommand(const Arguments& arguments) {
  return ExecInSandbox(arguments, TRY(SandboxNameOf(arguments, "sandbox exec")));
}

Result<int> ExecInSandbox(const Arguments& arguments, const std::string& name) {
  session::ExecRequest request;
  request.timeout_ms = TRY(ReadTimeout(arguments));
  request.waits = !arguments.Has("no-wait");
  const NamedSandbox sandbox = TRY(FindSandbox(name));
  std::string script = TRY(ReadScript(arguments));
  bool json = arguments.Has("json");
  request.lists_changes = json;
  std::string output;
  std::string error;
  session::CommandOutput shown_output(STDOUT_FILENO, run::ShownAt(STDOUT_FILENO));
  session::CommandOutput shown_error(STDERR_FILENO, run::ShownAt(STDERR_FILENO));
  auto sink = [&](bool to_error, std::string_view bytes) -> Status {
    if (!json) return (to_error ? shown_error : shown_output).Take(bytes);
    (to_error ? error : output) += bytes;
    return Ok();
  };
  Result<session::CommandResult> ended = sandbox.Exec(script, request, sink);
  Status finished = shown_output.Finish();
  TRY(shown_error.Finish());
  session::CommandResult result = TRY(std::move(ended));
  int status = StatusOf(result);
  if (json) {
    TRY(PrintResult(result, output, error));
    return status;
  }
  TRY(std::move(finished));
  WarnOfEnd(result, name);
  return status;
}

Command SandboxShell() {
  return {.name = "sandbox shell",
          .carry_out = SandboxShellCommand,
          .operands = "NAME",
          .doc = kShellDoc,
          .example = "  agentic-ci sandbox shell work\n",
          .variables = {{"TERM", "The kind of terminal, for programs in the sandbox."}}};
}

Result<int> SandboxShellCommand(const Arguments& arguments) {
  std::string name = TRY(SandboxNameOf(arguments, "sandbox shell"));
  TRY(CheckBackend(name));
  Result<session::TerminalShell::End> ended = [&]() -> Result<session::TerminalShell::End> {
    session::RawTerminal terminal = TRY(session::RawTerminal::Open());
    logging::Info("`exit` leaves the shell, `%help` lists further commands", {{"sandbox", name}});
    return CarryShells(name, terminal);
  }();
  // The last line on the screen was the shell's.
  if (!ended.ok() || !ended.value().result) (void)Print("\n");
  if (!ended.ok()) return std::move(ended).error();
  if (!ended.value().result) return 128 + ended.value().signal;
  WarnOfEnd(*ended.value().result, name);
  return StatusOf(*ended.value().result);
}

}  // namespace cli
