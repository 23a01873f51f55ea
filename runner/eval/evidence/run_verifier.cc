// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/run_verifier.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/sys.h"
#include "eval/child/copy_tree.h"
#include "eval/child/own_program.h"
#include "eval/child/scratch.h"
#include "eval/evidence/report_evidence.h"

namespace eval {
namespace {

// How long a run takes besides its agent.
constexpr std::chrono::seconds kPatience{60};

// No network, and all that a program may need of the host.
constexpr char kPolicy[] =
    "version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/]}\n";
constexpr char kCell[] = "/cell";

// Makes the checkout of the run: the verifier's files, and a copy of the cell. Where they are is
// shown in no sandbox that has a /tmp of its own.
Status MakeWork(const Verifier& verifier, const std::string& directory, const std::string& work) {
  TRY(sys::MakeDirectories(work + kCell));
  std::vector<std::string> left_out;
  TRY(CopyTree(directory, work + kCell, &left_out));
  for (const auto& [path, text] : verifier.files) {
    const std::string file = work + "/" + path;
    TRY(sys::MakeDirectories(file.substr(0, file.rfind('/'))));
    TRY(sys::WriteFile(file, text, 0755));
  }
  return Ok();
}

// Returns the words of the run, of which the second is its tier.
std::vector<std::string> WordsOf(const Verifier& verifier, const codec::Json& value,
                                 const Evidence& evidence, const std::string& scratch) {
  codec::Json channels = codec::Json::EmptyObject();
  for (size_t i = 0; i < kChannels; ++i) {
    const auto channel = static_cast<Channel>(i);
    channels.Set(std::string(Render(channel)), Render(evidence.Of(channel)));
  }
  codec::Json check;
  check.Set("value", value)
      .Set("evidence", scratch + "/work" + kCell)
      .Set("channels", std::move(channels));
  std::vector<std::string> words = {"run",
                                    "",
                                    "--quiet",
                                    "--workdir",
                                    scratch + "/work",
                                    "--report-dir",
                                    scratch + "/report",
                                    "--policy",
                                    scratch + "/policy.yml",
                                    "--timeout",
                                    std::to_string(verifier.seconds) + "s",
                                    "--env",
                                    "AGENTIC_CI_CHECK=" + codec::RenderJsonLine(check),
                                    "--"};
  words.insert(words.end(), verifier.command.begin(), verifier.command.end());
  return words;
}

// The answer is the last line that is not empty.
Result<Verified> AnswerOf(std::string_view output) {
  while (!output.empty() && (output.back() == '\n' || output.back() == '\r')) {
    output.remove_suffix(1);
  }
  const std::string_view line = output.substr(output.rfind('\n') + 1);
  const size_t blank = line.find(' ');
  for (const Truth truth : {Truth::kTrue, Truth::kFalse, Truth::kUnknown}) {
    if (line.substr(0, blank) != Render(truth)) continue;
    return Verified{truth, blank == line.npos ? "it says so" : std::string(line.substr(blank + 1))};
  }
  return Invalid("its last line does not begin with true, false or unknown");
}

Result<Verified> Ask(const Verifier& verifier, const codec::Json& value,
                     const std::string& directory, const Evidence& evidence) {
  const std::string path = sys::Environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  OwnProgram program = TRY(OwnProgram::Find(path));
  Scratch scratch = TRY(Scratch::Create());
  TRY(MakeWork(verifier, directory, scratch.path() + "/work"));
  TRY(sys::WriteFile(scratch.path() + "/policy.yml", kPolicy));
  std::vector<std::string> words = WordsOf(verifier, value, evidence, scratch.path());
  // None of this job's: neither its event nor a credential.
  OwnProgram::Variables variables;
  for (const char* name : {"HOME", "TMPDIR"}) {
    if (std::optional<std::string> one = sys::Environment(name)) variables.emplace_back(name, *one);
  }
  const auto ask_in = [&](const char* tier) -> Result<Verified> {
    words[1] = std::string("--isolation=") + tier;
    Answered run = TRY(program.Ask(
        words, variables, Deadline::After(std::chrono::seconds(verifier.seconds) + kPatience)));
    const ReportEvidence said = ReadCellEvidence(scratch.path());
    if (said.ending == Ending::kNeverRan) return ErrorOf(run);
    if (said.ending != Ending::kEnded) return Invalid(said.ending_reason);
    return AnswerOf(said.evidence.answer);
  };
  Result<Verified> verified = ask_in("namespaces");
  if (verified.ok() || verified.error().code != Code::kUnsupported) return verified;
  return ask_in("landlock");  // A pod without privileges gives no namespaces.
}

}  // namespace

Verified RunVerifier(const Verifier& verifier, const codec::Json& value,
                     const std::string& directory, const Evidence& evidence) {
  Result<Verified> verified = Ask(verifier, value, directory, evidence);
  if (verified.ok()) return std::move(verified).value();
  return {Truth::kUnknown, "the verifier '" + verifier.name + "': " + verified.error().what};
}

}  // namespace eval
