// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_command.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "advise/diff.h"
#include "advise/explain.h"
#include "advise/suggest_patch.h"
#include "advise/table.h"
#include "backend/openshell/client/command_line.h"
#include "backend/openshell/policy_text.h"
#include "base/exit_code.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "codec/data/position.h"
#include "codec/text/neutral.h"
#include "policy/load/parse.h"
#include "policy/model/host_pattern.h"
#include "policy/model/json_schema.h"
#include "run/environment.h"
#include "run/learn.h"
#include "run/model_access.h"
#include "run/policy_source.h"
#include "run/prepare.h"
#include "run/trusted/config.h"

namespace cli {
namespace {

constexpr std::string_view kExplainDoc =
    "Explain whether a run may send a request. Names the rule that decides, and why. Give a URL, "
    "or HOST:PORT "
    "for the connection only. In a repository with a configuration, the agent, its provider and "
    "the `ecosystems` are those of a task; all files are read as they are in the working tree. "
    "Exit status 0: allowed, 77: denied.";

// A little above the bound of a policy file, so that parsing says what the bound is.
constexpr size_t kFileBytesMax = size_t{1} << 20;

policy::ParseContext ContextOf(const std::string& file, const std::string& agent) {
  policy::ParseContext context;
  context.file = file;
  context.agent_name = agent;
  context.model_hosts = run::ModelHostsOfAgent;
  return context;
}

// Returns what `--policy` names, or else the repository's own, as it is in the working tree.
Result<std::string> PolicyFileOf(const Arguments& arguments, const std::string& command) {
  std::string file =
      arguments.Has("policy") ? arguments.Get("policy") : FindRepositoryFile(run::kPolicyPath);
  if (!file.empty()) return file;
  return Usage(std::string("no ") + run::kPolicyPath + " in this directory or above: " + command +
                   " needs a policy",
               "--policy FILE");
}

Result<policy::ParsedPolicy> ReadPolicy(const std::string& file, const std::string& agent) {
  std::string text = TRY(ReadNamedFile(file, kFileBytesMax).Context("reading the policy"));
  return policy::ParsePolicy(text, ContextOf(file, agent));
}

// Returns the policy that a run here would have, with notes; without a configuration, the one that
// the file says.
Result<std::pair<policy::ParsedPolicy, std::vector<std::string>>> ForeseenPolicyOf(
    const Arguments& arguments) {
  using Foreseen = std::pair<policy::ParsedPolicy, std::vector<std::string>>;
  if (arguments.Has("bare") || FindRepositoryFile(run::kConfigPath).empty()) {
    if (arguments.Has("task")) return Usage("--task needs a configuration", "--agent NAME");
    const std::string file = TRY(PolicyFileOf(arguments, "policy explain"));
    policy::ParsedPolicy parsed = TRY(ReadPolicy(file, arguments.Get("agent", "command")));
    run::AddResolvedBinaries(nullptr, &parsed.policy);
    return Foreseen(std::move(parsed), {});
  }
  run::Request request = DefaultRequest();
  request.policy_ref = run::kWorktree;
  request.policy_file = arguments.Get("policy");
  request.task = arguments.Get("task");
  if (arguments.Has("agent")) {
    TRY(TaskOptionRules().set("agent", arguments.Get("agent"), &request));
    request.given.emplace_back("agent");
  }
  run::ForeseenPolicy foreseen = TRY(run::ForeseePolicy(TaskOptionRules(), std::move(request)));
  foreseen.policy.parsed.file = foreseen.policy.file;
  return Foreseen(std::move(foreseen.policy.parsed), std::move(foreseen.notes));
}

// Returns what a run would see for a program: its path, links followed. A path that is not on this
// machine stands for itself.
Result<std::string> ResolveBinary(const std::string& name) {
  std::string path = name;
  if (name.find('/') == std::string::npos) {
    path = run::FindProgram(name, nullptr);
    if (path.empty()) {
      return Error{Code::kNotFound, "no program '" + name + "' on the PATH",
                   "--binary /usr/bin/" + name};
    }
  }
  Result<std::string> real = sys::RealPath(path);
  return path.find('/') != std::string::npos && real.ok() ? std::move(real).value() : path;
}

// NAME@HOST, as `run` takes it; what the value comes from does not matter here.
Result<advise::BoundSecret> ParseBoundSecret(std::string_view text) {
  size_t at = text.rfind('@');
  size_t end = std::min(text.find('='), at);
  if (at == std::string_view::npos || end == 0 || at + 1 == text.size()) {
    return Error{Code::kUsage, "--secret: a credential must be bound to a host: NAME@HOST",
                 "--secret ANTHROPIC_API_KEY@api.anthropic.com"};
  }
  return advise::BoundSecret{std::string(text.substr(0, end)),
                             policy::CanonicalHost(text.substr(at + 1))};
}

// Sorts the warnings as a person reads the file: from its top.
std::vector<policy::Warning> InOrder(std::vector<policy::Warning> warnings) {
  std::stable_sort(warnings.begin(), warnings.end(),
                   [](const policy::Warning& a, const policy::Warning& b) {
                     return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
                   });
  return warnings;
}

// One file of `policy check`.
struct Checked {
  std::string file;
  std::string text;
  Result<policy::ParsedPolicy> parsed;
  std::vector<Error> errors;  // The errors from the file's top.
};

Checked Check(const std::string& file) {
  Result<std::string> text = ReadNamedFile(file, kFileBytesMax).Context("reading the policy");
  if (!text.ok()) return {file, "", text.error(), {text.error()}};
  std::vector<Error> errors;
  Result<policy::ParsedPolicy> parsed =
      policy::ParsePolicy(text.value(), ContextOf(file, "command"), &errors);
  std::stable_sort(errors.begin(), errors.end(), [](const Error& a, const Error& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return {file, std::move(text).value(), std::move(parsed), std::move(errors)};
}

// The generation of OpenShell whose differences are wanted; nullopt for none.
using Wanted = std::optional<openshell::Generation>;

std::vector<openshell::PolicyDifference> DifferencesOf(const Checked& checked, Wanted wanted) {
  if (!wanted || !checked.parsed.ok()) return {};
  return openshell::DifferencesOf(checked.parsed.value(), *wanted);
}

// The only other backend that reads policies.
Status CheckBackendName(const Arguments& arguments, std::string_view option) {
  const std::string name = arguments.Get(option);
  if (name == "openshell") return Ok();
  const std::string shown = "--" + std::string(option);
  return Usage(shown + ": '" + name + "' is not a backend that reads policies",
               shown + " openshell");
}

// Returns what `option`, which names a backend, and `--openshell` ask for.
Result<Wanted> GenerationOf(const Arguments& arguments, std::string_view option) {
  if (!arguments.Has(option)) {
    if (!arguments.Has("openshell")) return Wanted();
    return Usage("--openshell needs --" + std::string(option),
                 "--" + std::string(option) + " openshell --openshell 0.1");
  }
  TRY(CheckBackendName(arguments, option));
  const std::string name = arguments.Get("openshell", kGenerationDefault);
  const Wanted wanted = openshell::ParseGeneration(name);
  if (wanted) return wanted;
  return Usage("--openshell: '" + name + "' is not a generation", "--openshell 0.1");
}

Status PrintCheck(const Checked& checked, Wanted wanted) {
  for (const Error& error : checked.errors) {
    TRY(sys::WriteAll(STDERR_FILENO, RenderErrorIn(error, checked.text)));
  }
  if (!checked.parsed.ok()) return Ok();
  for (const policy::Warning& warning : InOrder(checked.parsed.value().warnings)) {
    TRY(PrintLines(codec::Locate(checked.file, warning.at) + ": warning: " + warning.what));
  }
  for (const openshell::PolicyDifference& one : DifferencesOf(checked, wanted)) {
    TRY(PrintLines(codec::Locate(checked.file, one.at) + ": note: OpenShell: " + one.what));
  }
  return PrintLines(codec::Locate(checked.file, {}) + ": ok");
}

codec::Json CheckAsJson(const Checked& checked, Wanted wanted) {
  codec::Json object;
  object.Set("file", checked.file);
  object.Set("valid", checked.parsed.ok());
  if (!checked.parsed.ok()) {
    object.Set("error", checked.errors.front().what);
    object.Set("hint", checked.errors.front().hint);
    codec::Json errors = codec::Json::EmptyArray();
    for (const Error& error : checked.errors) {
      codec::Json one;
      one.Set("error", error.what);
      one.Set("hint", error.hint);
      errors.Push(one);
    }
    object.Set("errors", errors);
    return object;
  }
  object.Set("form", checked.parsed.value().short_form ? "endpoints" : "openshell");
  codec::Json warnings = codec::Json::EmptyArray();
  for (const policy::Warning& warning : InOrder(checked.parsed.value().warnings)) {
    codec::Json one;
    one.Set("line", warning.at.line);
    one.Set("column", warning.at.column);
    one.Set("what", warning.what);
    warnings.Push(one);
  }
  object.Set("warnings", warnings);
  if (!wanted) return object;
  codec::Json differences = codec::Json::EmptyArray();
  for (const openshell::PolicyDifference& one : DifferencesOf(checked, wanted)) {
    codec::Json entry;
    entry.Set("line", one.at.line);
    entry.Set("column", one.at.column);
    entry.Set("what", one.what);
    differences.Push(std::move(entry));
  }
  object.Set("differences", std::move(differences));
  return object;
}

// The sums that `policy test` forms over its files.
struct TableTotal {
  int passed = 0;
  int failed = 0;
  codec::Json files = codec::Json::EmptyArray();
};

codec::Json TableAsJson(const std::string& file, const advise::TableReport& report) {
  codec::Json object;
  object.Set("file", file);
  object.Set("about", report.about);
  object.Set("cases", report.cases);
  object.Set("failures", codec::Json::FromStrings(report.failures));
  return object;
}

Status TestTable(const std::string& file, bool json, TableTotal* total) {
  advise::TableReport report = TRY(advise::RunPolicyTable(file, run::ModelHostsOfAgent));
  int failed = static_cast<int>(report.failures.size());
  total->passed += report.cases - failed;
  total->failed += failed;
  total->files.Push(TableAsJson(file, report));
  if (json) return Ok();
  for (const std::string& failure : report.failures) TRY(PrintLines(failure));
  std::string word = failed == 0 ? "ok " : "FAILED ";
  return PrintLines(word + codec::Locate(file, {}) + " (" + std::to_string(report.cases) +
                    (report.cases == 1 ? " case)\n" : " cases)\n"));
}

}  // namespace

Result<int> PolicyCheckCommand(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Error{Code::kUsage, "policy check needs a file", "agentic-ci policy check FILE"};
  }
  bool json = arguments.Has("json");
  const Wanted wanted = TRY(GenerationOf(arguments, "for"));
  int status = 0;
  codec::Json files = codec::Json::EmptyArray();
  for (const std::string& file : arguments.operands) {
    Checked checked = Check(file);
    if (!checked.parsed.ok() && status == 0) {
      status = static_cast<int>(ExitCodeOf(checked.parsed.error().code));
    }
    if (json) {
      files.Push(CheckAsJson(checked, wanted));
    } else {
      TRY(PrintCheck(checked, wanted));
    }
  }
  if (json) {
    codec::Json object;
    object.Set("files", files);
    TRY(Print(codec::RenderJson(object)));
  }
  return status;
}

Result<int> PolicyExportCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Usage("unexpected '" + arguments.operands.front() + "'",
                 "agentic-ci policy export --to openshell --policy " + arguments.operands.front());
  }
  if (!arguments.Has("to")) {
    return Usage("policy export needs a backend", "agentic-ci policy export --to openshell");
  }
  const Wanted wanted = TRY(GenerationOf(arguments, "to"));
  const std::string file = TRY(PolicyFileOf(arguments, "policy export"));
  policy::ParsedPolicy parsed = TRY(ReadPolicy(file, arguments.Get("agent", "command")));
  const std::string body = TRY(openshell::RenderPolicy(parsed.policy, {}));
  const bool is_tested = *wanted == openshell::Generation::k00;
  std::string head =
      "# For OpenShell " +
      std::string(is_tested ? openshell::kTestedReleases : "0.1, as its documentation has it") +
      ", from " + codec::NeutralLine(file) + ".\n";
  for (const openshell::PolicyDifference& one : openshell::DifferencesOf(parsed, *wanted)) {
    const std::string line = one.at.line > 0 ? "line " + std::to_string(one.at.line) + ": " : "";
    head += "# " + line + codec::NeutralLine(one.what) + ".\n";
  }
  TRY(Print(head + body));
  return 0;
}

Command ExplainCommandSpec() {
  return {
      .name = "policy explain",
      .carry_out = PolicyExplainCommand,
      .operands = "URL",
      .doc = kExplainDoc,
      .example =
          "  agentic-ci policy explain https://api.github.com/repos/o/r/issues\n  agentic-ci "
          "policy explain https://api.github.com/graphql --method POST\n",
      .options = {
          {"policy", "FILE", "",
           "The policy file. If not given, the task's, or `.agentic-ci/openshell-policy.yml`, as "
           "it is in the working tree."},
          {"binary", "PATH", "",
           "The calling program, as a path or a name on the PATH. Further ones are its "
           "ancestors, nearest first.",
           true},
          {"method", "METHOD", "GET",
           "The request method. With a wss URL, WEBSOCKET_TEXT means a message."},
          {"body", "FILE", "",
           "The request body, where the policy inspects bodies (GraphQL, JSON-RPC, MCP), or "
           "the WebSocket message."},
          {"task", "NAME", "", "The task of the configuration. If not given, the first."},
          {"agent", "NAME", "",
           "The agent the run would use, instead of a task's; determines the model host of "
           "`defaults: minimal`. Without a configuration: `command`."},
          {"bare", "", "", "Look at the policy file alone, and at no configuration."},
          kJsonOption}};
}

Result<int> PolicyExplainCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "policy explain needs exactly one URL or HOST:PORT",
                 "agentic-ci policy explain https://api.example.com/"};
  }
  auto [parsed, assumed] = TRY(ForeseenPolicyOf(arguments));
  advise::Question question;
  question.url = arguments.operands.front();
  question.method = arguments.Get("method", "GET");
  const std::vector<std::string> named = arguments.All("binary");
  for (const std::string& name : named) {
    std::string binary = TRY(ResolveBinary(name));
    question.binaries.push_back(std::move(binary));
  }
  std::string body = arguments.Get("body");
  if (!body.empty()) {
    std::string bytes = TRY(ReadNamedFile(body, kFileBytesMax).Context("reading the body"));
    question.body = std::move(bytes);
  }
  advise::Explanation explanation = TRY(advise::Explain(parsed, question));
  explanation.notes.insert(explanation.notes.end(), assumed.begin(), assumed.end());
  for (size_t i = 0; i < question.binaries.size(); ++i) {
    if (named[i] == question.binaries[i]) continue;
    explanation.notes.push_back("'" + named[i] + "' is " + question.binaries[i] + " here");
  }
  TRY(arguments.Has("json") ? Print(advise::RenderExplanationJson(explanation))
                            : PrintLines(advise::RenderExplanation(explanation)));
  return explanation.allowed ? 0 : static_cast<int>(ExitCode::kRefused);
}

Result<int> PolicyTestCommand(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Error{Code::kUsage, "policy test needs a table", "agentic-ci policy test FILE"};
  }
  bool json = arguments.Has("json");
  TableTotal total;
  for (const std::string& file : arguments.operands) TRY(TestTable(file, json, &total));
  if (json) {
    codec::Json object;
    object.Set("passed", total.passed);
    object.Set("failed", total.failed);
    object.Set("files", total.files);
    TRY(Print(codec::RenderJson(object)));
  } else {
    TRY(Print(std::to_string(total.passed) + " passed, " + std::to_string(total.failed) +
              " failed\n"));
  }
  return total.failed == 0 ? 0 : static_cast<int>(ExitCode::kInvalid);
}

Result<int> PolicyDiffCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 2) {
    return Error{Code::kUsage, "policy diff needs two files: before and after",
                 "agentic-ci policy diff BEFORE AFTER"};
  }
  std::vector<advise::BoundSecret> secrets;
  for (const std::string& text : arguments.All("secret")) {
    advise::BoundSecret secret = TRY(ParseBoundSecret(text));
    secrets.push_back(std::move(secret));
  }
  const std::string& before = arguments.operands[0];
  const std::string& after = arguments.operands[1];
  std::string agent = arguments.Get("agent", "command");
  policy::ParsedPolicy now = TRY(ReadPolicy(before, agent));
  policy::ParsedPolicy next = TRY(ReadPolicy(after, agent));
  advise::PolicyDifference difference = advise::ComparePolicies(now.policy, next.policy, secrets);
  TRY(arguments.Has("json") ? Print(advise::RenderDifferenceJson(difference, before, after))
                            : PrintLines(advise::RenderDifference(difference, before, after)));
  return 0;
}

Result<int> PolicySuggestCommand(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Error{Code::kUsage, "policy suggest needs a report, or a file of `run --learn`",
                 "agentic-ci policy suggest REPORT-DIR"};
  }
  const bool whole = arguments.Has("whole");
  if (whole && !arguments.Has("policy")) {
    return Error{Code::kUsage, "--whole prints a policy with the additions: it needs one",
                 "--policy FILE"};
  }
  run::Learned refusals;
  for (const std::string& text : arguments.All("secret")) {
    refusals.secrets.push_back(TRY(ParseBoundSecret(text)));
  }
  for (const std::string& path : arguments.operands) {
    run::Learned more = TRY(run::ReadRefusals(path));
    std::move(more.denials.begin(), more.denials.end(), std::back_inserter(refusals.denials));
    std::move(more.secrets.begin(), more.secrets.end(), std::back_inserter(refusals.secrets));
  }
  std::string notes = run::TakeSecretHosts(&refusals);
  if (!arguments.Has("policy")) {
    TRY(Print(notes + run::RenderFragment(refusals.denials)));
    return 0;
  }
  std::vector<advise::Denial> denials;
  for (report::DeniedRequest& one : refusals.denials) denials.push_back(std::move(one.denial));
  policy::ParseContext context = ContextOf(arguments.Get("policy"), "command");
  std::string text = TRY(ReadNamedFile(context.file, kFileBytesMax).Context("reading the policy"));
  advise::SuggestedPatch suggested = TRY(advise::SuggestPatch(text, context, denials));
  for (const std::string& note : suggested.notes) notes += "# " + note + "\n";
  if (suggested.patch.empty()) notes += "# No refused request could be allowed by an addition.\n";
  if (!whole) {
    TRY(Print(notes + suggested.patch));
    return 0;
  }
  TRY(Print(notes + (suggested.patch.empty() ? text : suggested.text)));
  return 0;
}

Result<int> PolicySchemaCommand(const Arguments&) {
  TRY(Print(policy::RenderPolicySchema()));
  return 0;
}

}  // namespace cli
