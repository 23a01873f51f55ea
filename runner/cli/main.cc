// SPDX-License-Identifier: Apache-2.0
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/sys.h"
#include "base/umask.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/error_text.h"
#include "cli/help.h"
#include "cli/output.h"

namespace cli {
namespace {

// ENSURE aborts, and so does an exception that is not caught: the status says that it was our bug.
void ExitOfBug(int) { ::_exit(static_cast<int>(ExitCode::kBug)); }

// Until a run has a better end for it (run/native/supervise.h). The default action would do, but
// for a container's first process, which it does not reach.
void ExitOfSignal(int signal) { ::_exit(128 + (signal == SIGINT ? SIGINT : SIGTERM)); }

void CatchSignal(int signal) {
  if (::signal(signal, ExitOfSignal) == SIG_IGN) ::signal(signal, SIG_IGN);  // nohup's.
}

// Before anything else runs: no file of the host decides what OpenSSL does, a reader that went away
// is an error and not the end, and what we create is readable by the steps that come after.
void PrepareProcess() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) CatchSignal(signal);
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  (void)sys::FillStandardStreams();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGABRT, ExitOfBug);
  ReplaceUmask();
}

bool IsOneOf(const std::string& word, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool AsksForHelp(const std::string& word) { return IsOneOf(word, {"--help", "-h", "help"}); }

Result<int> Print(const std::string& text) {
  TRY(cli::Print(text));
  return 0;
}

// Returns whether a descriptor is a terminal that is written to in colour.
bool IsStyled(int descriptor) {
  return ::isatty(descriptor) == 1 && sys::Environment("NO_COLOR").value_or("").empty() &&
         sys::Environment("TERM").value_or("dumb") != "dumb";
}

Result<int> PrintHelp(const std::string& text) {
  return Print(IsStyled(STDOUT_FILENO) ? WithBoldHeadings(text) : text);
}

// "error" in red, "hint" in bold.
std::string Styled(std::string text) {
  for (const auto& [word, style] : {std::pair{"error: ", "31;1"}, {"hint: ", "1"}}) {
    const size_t at = text.find(word);
    if (at == std::string::npos) continue;
    text.insert(at + std::string_view(word).size() - 1, "\x1b[0m");
    text.insert(at, "\x1b[" + std::string(style) + "m");
  }
  return text;
}

// Returns the build that this is, and for one of a release how to verify that.
std::string VersionText() {
#if defined(__x86_64__)
  constexpr std::string_view kMachine = "x86_64";
#elif defined(__aarch64__)
  constexpr std::string_view kMachine = "aarch64";
#endif
#ifdef AGENTIC_CI_COMMIT
  constexpr std::string_view kCommit = AGENTIC_CI_COMMIT;
#else
  constexpr std::string_view kCommit;
#endif
  std::string text = "agentic-ci " + std::string(kVersion) + "\nlinux-" + std::string(kMachine);
  if (kCommit.empty()) return text + ", not built by tools/build\n";
  return text + ", of commit " + std::string(kCommit) +
         "\nto verify a release: " + std::string(kHomepage) +
         "/blob/main/docs/reference/releases.md\n";
}

Result<int> Carry(std::vector<std::string> words) {
  const std::vector<Command> commands = Commands();
  if (words.size() == 1 && IsOneOf(words[0], {"--version", "-V"})) {
    return Print(VersionText());
  }
  // "--all" belongs to the help, where it is asked for.
  auto detail = HelpDetail::kCommon;
  const auto command_end = std::ranges::find(words, "--");
  if (std::any_of(words.begin(), command_end, AsksForHelp) && std::erase(words, "--all") > 0) {
    detail = HelpDetail::kAll;
  }
  // "help policy check", "--help", and "policy --help", which is not a complete command.
  bool asks = !words.empty() && AsksForHelp(words[0]);
  if (asks || (words.size() == 2 && AsksForHelp(words[1]) && words[1] != "help")) {
    words.erase(asks ? words.begin() : words.begin() + 1);
    std::string help = TRY(HelpFor(commands, words, detail));
    return PrintHelp(help);
  }
  Command command = TRY(SelectCommand(commands, words));
  bool two_words = command.name.find(' ') != std::string_view::npos;
  words.erase(words.begin(), words.begin() + (two_words ? 2 : 1));
  Arguments arguments = TRY(ParseArguments(command.options, words));
  if (arguments.help) return PrintHelp(RenderHelp(command, detail));
  return command.carry_out(arguments);
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
  cli::PrepareProcess();
  Result<int> status = cli::Carry({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (status.ok()) return status.value();
  const Error& error = status.error();
  std::string text = error.code == Code::kNothingToDo
                         ? "agentic-ci: nothing to do: " + error.what + "\n"
                         : cli::RenderError(error);
  if (cli::IsStyled(STDERR_FILENO)) text = cli::Styled(std::move(text));
  (void)sys::WriteAll(STDERR_FILENO, text);
  return static_cast<int>(ExitCodeOf(error.code));
}
