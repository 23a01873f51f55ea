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
#include "cli/completion.h"
#include "cli/config_command.h"
#include "cli/doctor_command.h"
#include "cli/error_text.h"
#include "cli/eval_command.h"
#include "cli/github.h"
#include "cli/image_command.h"
#include "cli/output.h"
#include "cli/policy_command.h"
#include "cli/post_command.h"
#include "cli/run_command.h"
#include "cli/sandbox_command.h"
#include "cli/sandbox_files_command.h"
#include "cli/setup_command.h"
#include "cli/verify_bundle_command.h"

namespace cli {
namespace {

struct Handler {
  std::string_view name;
  Result<int> (*carry_out)(const Arguments&);
};

constexpr Handler kHandlers[] = {
    {"run", RunCommand},
    {"post", PostCommand},
    {"policy check", PolicyCheckCommand},
    {"policy explain", PolicyExplainCommand},
    {"policy diff", PolicyDiffCommand},
    {"policy suggest", PolicySuggestCommand},
    {"policy export", PolicyExportCommand},
    {"policy test", PolicyTestCommand},
    {"policy schema", PolicySchemaCommand},
    {"config check", ConfigCheckCommand},
    {"config explain", ConfigExplainCommand},
    {"config init", ConfigInitCommand},
    {"config schema", ConfigSchemaCommand},
    {"image pull", ImagePullCommand},
    {"image verify", ImageVerifyCommand},
    {"image inspect", ImageInspectCommand},
    {"image check", ImageCheckCommand},
    {"image prune", ImagePruneCommand},
    {"setup", SetupCommand},
    {"exec", ExecCommand},
    {"stop", StopCommand},
    {"sandbox create", SandboxCreateCommand},
    {"sandbox take", SandboxTakeCommand},
    {"sandbox exec", SandboxExecCommand},
    {"sandbox shell", SandboxShellCommand},
    {"sandbox list", SandboxListCommand},
    {"sandbox diff", SandboxDiffCommand},
    {"sandbox put", SandboxPutCommand},
    {"sandbox get", SandboxGetCommand},
    {"sandbox apply", SandboxApplyCommand},
    {"sandbox snapshot", SandboxSnapshotCommand},
    {"sandbox snapshots", SandboxSnapshotsCommand},
    {"sandbox restore", SandboxRestoreCommand},
    {"sandbox reset", SandboxResetCommand},
    {"sandbox delete", SandboxDeleteCommand},
    {"watch", WatchCommand},
    {"report", ReportCommand},
    {"report open", ReportOpenCommand},
    {"report diff", ReportDiffCommand},
    {"verify-bundle", VerifyBundleCommand},
    {"doctor", DoctorCommand},
    {"eval validate", EvalValidateCommand},
    {"eval list", EvalListCommand},
    {"eval run", EvalRunCommand},
    {"eval grade", EvalGradeCommand},
    {"eval merge", EvalMergeCommand},
    {"eval compare", EvalCompareCommand},
    {"eval redteam", EvalRedteamCommand},
    {"eval redteam-agent", EvalRedteamAgentCommand},
    {"completion", CompletionCommand},
    {"action post", ActionPostCommand},
    {"action", ActionCommand},
};

// ENSURE aborts, and so does an exception that is not caught: the status says that it was our bug.
void ExitOfBug(int) { ::_exit(static_cast<int>(ExitCode::kBug)); }

// Until a run has a better end for it (run/supervise.h). The default action would do, but for a
// container's first process, which it does not reach.
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
  // "help policy check", "--help", and "policy --help", which is not a complete command.
  bool asks = !words.empty() && AsksForHelp(words[0]);
  if (asks || (words.size() == 2 && AsksForHelp(words[1]) && words[1] != "help")) {
    words.erase(asks ? words.begin() : words.begin() + 1);
    std::string help = TRY(HelpFor(commands, words));
    return Print(help);
  }
  Command command = TRY(SelectCommand(commands, words));
  bool two_words = command.name.find(' ') != std::string_view::npos;
  words.erase(words.begin(), words.begin() + (two_words ? 2 : 1));
  Arguments arguments = TRY(ParseArguments(command.options, words));
  if (arguments.help) return Print(RenderHelp(command));
  for (const Handler& handler : kHandlers) {
    if (handler.name == command.name) return handler.carry_out(arguments);
  }
  ENSURE(false);  // Every command of the table has a handler.
  return static_cast<int>(ExitCode::kBug);
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
  cli::PrepareProcess();
  Result<int> status = cli::Carry({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (status.ok()) return status.value();
  const Error& error = status.error();
  (void)sys::WriteAll(STDERR_FILENO, error.code == Code::kNothingToDo
                                         ? "agentic-ci: nothing to do: " + error.what + "\n"
                                         : cli::RenderError(error));
  return static_cast<int>(ExitCodeOf(error.code));
}
