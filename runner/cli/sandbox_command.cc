// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_command.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/open/open.h"
#include "backend/openshell/fleet.h"
#include "backend/openshell/lasting.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/sys.h"
#include "cli/output.h"
#include "cli/run_command.h"
#include "codec/data/json.h"
#include "codec/text/quantity.h"
#include "report/read.h"
#include "report/terminal/end_log.h"
#include "run/agent_output.h"
#include "serve/result_json.h"
#include "session/client.h"
#include "session/command_output.h"
#include "session/keeper.h"
#include "session/pool.h"
#include "session/shell.h"
#include "session/snapshot/snapshot.h"

namespace cli {
namespace {

constexpr std::chrono::milliseconds kStateTime{500};

constexpr OptionSpec kBackendOption{"backend", "NAME", "", "Only sandboxes of this backend."};
constexpr OptionSpec kGatewayOption{
    "gateway", "URL", "",
    "A gateway of OpenShell, by its URL or by its name in `openshell gateway list`. Requires "
    "`--backend openshell`."};
constexpr OptionSpec kGatewayTlsOption{
    "gateway-tls", "DIR", "",
    "The client certificates for the URL in `gateway`: `ca.crt`, `tls.crt` and `tls.key`."};

std::string Remaining(int64_t expires) {
  int64_t left = std::max<int64_t>(expires - static_cast<int64_t>(::time(nullptr)), 0);
  constexpr int64_t kMinute = 60;
  return std::to_string(left / kMinute) + "m" + std::to_string(left % kMinute) + "s";
}

// The gateway of OpenShell whose sandboxes are meant, not this user's own; nothing without one.
Result<std::optional<openshell::GatewayAddress>> FleetOf(const Arguments& arguments) {
  const std::string backend = arguments.Get("backend");
  if (!backend.empty() && backend != "openshell" && backend != "native") {
    return Usage("--backend: " + backend + " is not a backend", "--backend openshell");
  }
  openshell::GatewayAddress address{arguments.Get("gateway"), arguments.Get("gateway-tls")};
  if (!address.where.empty() && backend == "openshell") return std::optional(std::move(address));
  if (!address.where.empty()) return Usage("--gateway needs OpenShell", "--backend openshell");
  if (!address.tls.empty()) {
    return Usage("--gateway-tls needs a gateway", "--gateway https://...");
  }
  return std::optional<openshell::GatewayAddress>();
}

Result<int> ListOfFleet(const openshell::GatewayAddress& address, bool as_json) {
  codec::Json list = codec::Json::EmptyArray();
  std::string lines;
  std::vector<openshell::SandboxFacts> sandboxes = TRY(openshell::ListFleet(address));
  for (const openshell::SandboxFacts& one : sandboxes) {
    lines += one.name + "  " + one.phase + "  created " + one.created + "\n";
    codec::Json json;
    json.Set("name", one.name);
    json.Set("backend", "openshell");
    json.Set("phase", one.phase);
    json.Set("created", one.created);
    list.Push(std::move(json));
  }
  if (!as_json) {
    TRY(PrintLines(lines));
    return 0;
  }
  codec::Json json;
  json.Set("sandboxes", std::move(list));
  TRY(Print(codec::RenderJson(json)));
  return 0;
}

// Returns the row of a backend that has sandboxes that last.
Result<const backend::Row*> LastingRow(std::string_view name) {
  const backend::Row* row = backend::FindRow(name);
  if (row != nullptr && row->create != nullptr) return row;
  return Error{Code::kUnsupported, "backend " + std::string(name) + " has no sandboxes that last",
               "agentic-ci run"};
}

// Fails with kUsage for a pool.
Status CheckOne(const session::Facts& facts) {
  if (facts.backend != session::kPoolBackend) return Ok();
  return Usage("'" + facts.name + "' is a pool of sandboxes",
               "agentic-ci sandbox take " + facts.name);
}

}  // namespace

Result<NamedSandbox> FindSandbox(const std::string& name) {
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(name));
  TRY(CheckTaken(facts));
  TRY(CheckOne(facts));
  const backend::Row* row = TRY(LastingRow(facts.backend));
  return NamedSandbox{std::move(place), name, row};
}

Status CheckTaken(const session::Facts& facts) {
  if (facts.pool.empty()) return Ok();
  return Usage("'" + facts.name + "' has not been taken from the pool '" + facts.pool + "'",
               "agentic-ci sandbox take " + facts.pool);
}

Result<std::string> SandboxNameOf(const Arguments& arguments, std::string_view command) {
  if (arguments.operands.size() == 1) return arguments.operands.front();
  std::string hint = "agentic-ci " + std::string(command) + " NAME";
  if (arguments.operands.empty()) return Usage("the name of a sandbox is missing", hint);
  if (command.ends_with("exec")) {
    hint = "agentic-ci sandbox exec " + arguments.operands[0] + " -- " + arguments.operands[1];
  }
  return Usage("unexpected '" + arguments.operands[1] + "'", hint);
}

Command SandboxCreation(std::string_view name, Handler carry_out, std::string_view doc,
                        std::string_view example) {
  Command command{
      .name = name,
      .carry_out = carry_out,
      .operands = "",
      .doc = doc,
      .example = example,
      .options = {{"name", "NAME", "",
                   "The sandbox's name. If not given, one is made up and printed."},
                  {"ttl", "DURATION", "1h",
                   "How long the sandbox lives. Then it ends, and its report is written."},
                  {"snapshot", "SNAPSHOT", "",
                   "Begin with this snapshot, as `sandbox restore` would."},
                  {"snapshot-key", "FILE", "", "A public key that must have signed the snapshot."}},
      .variables = {{"XDG_RUNTIME_DIR, TMPDIR",
                     "Where sandboxes are known by name: `agentic-ci` in XDG_RUNTIME_DIR or "
                     "/run/user/UID, or else `agentic-ci-UID` in TMPDIR or /tmp. Only its user "
                     "may enter that directory."}}};
  for (const RunOption& option : kRunOptions) {
    OptionSpec spec = option.spec;
    constexpr std::array<std::string_view, 4> kOfOneTask = {"task", "prompt", "prompt-file",
                                                            "plan-only"};
    if (std::find(kOfOneTask.begin(), kOfOneTask.end(), spec.name) != kOfOneTask.end()) continue;
    if (spec.name == "agent") {
      spec.doc = "The agent that is to run in it: its programs and its environment are there.";
    }
    if (spec.name == "timeout") {
      spec.doc = "How long each command may run, unless it says otherwise.";
    }
    if (spec.name == "output") spec.doc = "How much output each command may print.";
    if (spec.name == "report-dir") {
      spec.doc = "The directory to write the report to, when the sandbox ends.";
    }
    if (spec.name == "apply") {
      spec.doc =
          "When the sandbox is deleted, apply the changes that passed the gates to the "
          "checkout.";
    }
    command.options.push_back(spec);
  }
  return command;
}

namespace {

Command SandboxCreate() {
  Command command = SandboxCreation(
      "sandbox create", SandboxCreateCommand,
      "Start a sandbox for many commands, and print its name. It ends with `sandbox delete`, or "
      "after --ttl. It has the policy, the gateway and the "
      "limits that `run` would have. Commands run in it with `sandbox exec`.",
      "  agentic-ci sandbox create --name work\n"
      "  agentic-ci sandbox create --name pool --pool 4\n");
  command.options.insert(
      command.options.begin() + 1,
      {"pool", "N", "",
       "Start a pool instead, which keeps N such sandboxes ready for `sandbox take`. Their reports "
       "are numbered directories in --report-dir."});
  return command;
}

}  // namespace

std::vector<Command> SandboxCommands() {
  std::vector<Command> commands = {
      SandboxCreate(),
      {.name = "sandbox take",
       .carry_out = SandboxTakeCommand,
       .operands = "POOL",
       .doc = "Take a started sandbox from a pool, and print its name. `sandbox create --pool N` "
              "starts a pool of N sandboxes, which replaces each one that is taken.",
       .example = "  agentic-ci sandbox take pool\n",
       .options = {kJsonOption}},
      {.name = "sandbox exec",
       .carry_out = SandboxExecCommand,
       .operands = "NAME [-- PROGRAM ARG...]",
       .doc = "Run PROGRAM in the sandbox NAME. Its shell starts it. Without PROGRAM, the shell "
              "runs the "
              "script on standard input. "
              "Variables, functions, options, traps, background jobs and the working directory "
              "stay for the next command. The exit status is the command's; 124: it ran too long; "
              "125: another limit ended it; 75: busy.",
       .example = "  agentic-ci sandbox exec work -- make test\n  echo \"cd src && make\" | "
                  "agentic-ci sandbox exec work\n",
       .options = {{"timeout", "DURATION", "",
                    "How long the command may run. If not given, as the "
                    "sandbox was created."},
                   {"no-wait", "", "", "Fail if another command is running, instead of waiting."},
                   {"json", "", "",
                    "Print one JSON object: the status and why the command ended, its output, what "
                    "it used, and the files it changed."}}},
      {.name = "sandbox list",
       .carry_out = SandboxListCommand,
       .operands = "",
       .doc = "List this user's sandboxes. With `--gateway`, lists every sandbox of agentic-ci on "
              "that "
              "gateway, also one whose run was killed.",
       .example = "  agentic-ci sandbox list --json\n",
       .options = {kBackendOption, kGatewayOption, kGatewayTlsOption, kJsonOption}},
      {.name = "sandbox diff",
       .carry_out = SandboxDiffCommand,
       .operands = "NAME",
       .doc = "Print the changes in a sandbox's checkout as a patch. It is for `git "
              "apply`, against the checkout as it was when the sandbox was created. A terminal and "
              "the log of a job get it without control characters "
              "and without the commands that this log carries out; a file gets it as it is.",
       .example = "  agentic-ci sandbox diff work | git apply --stat\n",
       .options = {kJsonOption}},
      {.name = "sandbox reset",
       .carry_out = SandboxResetCommand,
       .operands = "NAME",
       .doc = "Discard everything that was written in a sandbox. Everything that runs in it ends. "
              "The checkout, the programs and the policy are then as they were when it was "
              "created.",
       .example = "  agentic-ci sandbox reset work\n"},
      {.name = "sandbox delete",
       .carry_out = SandboxDeleteCommand,
       .operands = "NAME",
       .doc =
           "End a sandbox, write its report, keep its snapshots. The exit status is the one that "
           "`run` would give: 77, for instance, if a gate refuses the changes. With "
           "`--gateway`, delete what a lost run left on that gateway; there is no report then.",
       .example = "  agentic-ci sandbox delete work\n  agentic-ci sandbox delete work --apply\n",
       .options = {{"apply", "", "", "Apply the changes that passed the gates to the checkout."},
                   {"apply-ignored", "", "",
                    "With `apply`, also the files that git ignores, as `run --apply-ignored`."},
                   kBackendOption,
                   kGatewayOption,
                   kGatewayTlsOption,
                   kJsonOption}},
  };
  commands.insert(commands.begin() + 3, SandboxShell());
  std::vector<Command> files = SandboxFileCommands();
  commands.insert(commands.end() - 2, files.begin(), files.end());
  return commands;
}

namespace {

// A sandbox that cannot begin as was asked is not left behind.
Result<session::SandboxState> BeginWith(session::FoundSnapshot& snapshot, const std::string& name) {
  session::Place place = TRY(session::Place::Open());
  Result<session::SandboxState> restored = session::RestoreSnapshot(place, name, snapshot);
  if (!restored.ok()) (void)session::Delete(place, name, {});
  return restored;
}

Status PrintSandbox(const session::Facts& facts, const session::SandboxState* state, bool as_json) {
  if (!as_json) return PrintLines(facts.name);
  codec::Json json = serve::JsonOf(facts);
  if (state != nullptr) serve::AddState(*state, &json);
  return Print(codec::RenderJson(json));
}

Result<int> StartPool(const session::CreateRequest& create, const Arguments& arguments) {
  if (arguments.Has("snapshot")) {
    return Usage("the sandboxes of a pool begin without a snapshot",
                 "agentic-ci sandbox restore NAME SNAPSHOT");
  }
  if (!create.run.backend.local) {
    return Error{Code::kUnsupported,
                 "backend " + std::string(create.run.backend.name) + " has no pools"};
  }
  int64_t size = TRY(codec::ParseCount(arguments.Get("pool")).Context("--pool"));
  if (size < 1 || size > session::kPoolMax) {
    return Usage("--pool: a number from 1 to " + std::to_string(session::kPoolMax), "--pool 4");
  }
  session::Facts facts = TRY(session::CreatePool(create, size));
  TRY(PrintSandbox(facts, nullptr, create.run.json));
  return 0;
}

}  // namespace

Result<session::CreateRequest> ReadCreateRequest(const Arguments& arguments, std::string name) {
  session::CreateRequest create;
  create.run = TRY(ReadRequest(arguments));
  create.rules = TaskOptionRules();
  if (!create.run.command.empty()) {
    return Usage("a sandbox is created without a command", "agentic-ci sandbox exec NAME -- ...");
  }
  create.name = std::move(name);
  create.ttl_s = TRY(codec::ParseDuration(arguments.Get("ttl", "1h")).Context("--ttl"));
  if (create.ttl_s == 0) return Usage("--ttl: a sandbox needs an end", "--ttl 1h");
  if (arguments.Has("snapshot-key") && !arguments.Has("snapshot")) {
    return Usage("--snapshot-key needs a snapshot", "--snapshot SNAPSHOT");
  }
  return create;
}

Result<int> CreateSandbox(const Arguments& arguments, std::string name) {
  session::CreateRequest create = TRY(ReadCreateRequest(arguments, std::move(name)));
  logging::SetQuiet(create.run.json);
  if (arguments.Has("pool")) return StartPool(create, arguments);
  std::optional<session::FoundSnapshot> snapshot;
  if (arguments.Has("snapshot")) {
    snapshot.emplace(
        TRY(session::FindSnapshot(arguments.Get("snapshot"), arguments.Get("snapshot-key"))));
  }
  const backend::Row* row = TRY(LastingRow(create.run.backend.name));
  Result<session::Created> begun = row->create(create);
  if (!begun.ok()) SetRefusedReportAside(begun.error(), create.run.report_dir);
  session::Created created = TRY(std::move(begun));
  if (snapshot) created.state = TRY(BeginWith(*snapshot, created.facts.name));
  TRY(PrintSandbox(created.facts, &created.state, create.run.json));
  return 0;
}

Result<int> SandboxTakeCommand(const Arguments& arguments) {
  std::string pool = TRY(SandboxNameOf(arguments, "sandbox take"));
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(session::TakeFromPool(place, pool));
  Status printed = PrintSandbox(facts, nullptr, arguments.Has("json"));
  if (printed.ok()) return 0;
  (void)session::Delete(place, facts.name, {});  // Its name was told to no one.
  return std::move(printed).error();
}

Result<int> SandboxCreateCommand(const Arguments& arguments) {
  if (arguments.Has("name")) TRY(session::CheckName(arguments.Get("name")));
  return CreateSandbox(arguments, arguments.Get("name"));
}

Result<int> SandboxListCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) return Usage("sandbox list takes no operands");
  std::optional<openshell::GatewayAddress> fleet = TRY(FleetOf(arguments));
  if (fleet) return ListOfFleet(*fleet, arguments.Has("json"));
  session::Place place = TRY(session::Place::Open());
  openshell::Sweep();
  codec::Json list = codec::Json::EmptyArray();
  std::string lines;
  for (const session::Facts& facts : place.List()) {
    if (arguments.Get("backend", facts.backend) != facts.backend) continue;
    codec::Json json = serve::JsonOf(facts);
    std::string word = "pool";
    if (facts.backend != session::kPoolBackend) {
      Result<session::SandboxState> state =
          session::AskState(place, facts.name, Deadline::After(kStateTime));
      if (state.ok()) serve::AddState(state.value(), &json);
      word = !state.ok() ? "starting" : state.value().busy ? "busy" : "idle";
      if (!facts.pool.empty()) word += " in pool " + facts.pool;
    }
    lines += facts.name + "  " + word + "  " + Remaining(facts.expires) + " left  " +
             (facts.image.empty() ? "host" : facts.image) + "  " + facts.workdir + "\n";
    list.Push(std::move(json));
  }
  if (!arguments.Has("json")) {
    TRY(PrintLines(lines));
    return 0;
  }
  codec::Json json;
  json.Set("sandboxes", std::move(list));
  TRY(Print(codec::RenderJson(json)));
  return 0;
}

Result<int> SandboxDiffCommand(const Arguments& arguments) {
  std::string name = TRY(SandboxNameOf(arguments, "sandbox diff"));
  const NamedSandbox sandbox = TRY(FindSandbox(name));
  session::Diff diff = TRY(session::AskDiff(sandbox.place, name));
  if (!arguments.Has("json")) {
    session::CommandOutput shown(STDOUT_FILENO, run::ShownAt(STDOUT_FILENO));
    TRY(shown.Take(diff.patch));
    TRY(shown.Finish());
    if (!diff.complete) {
      logging::Warn(
          "not all changes are in this patch: the report, written when the sandbox ends, names "
          "what "
          "is left out",
          {{"sandbox", name}});
    }
    return 0;
  }
  TRY(Print(codec::RenderJson(serve::JsonOf(diff))));
  return 0;
}

Result<int> SandboxResetCommand(const Arguments& arguments) {
  std::string name = TRY(SandboxNameOf(arguments, "sandbox reset"));
  const NamedSandbox sandbox = TRY(FindSandbox(name));
  TRY(session::Reset(sandbox.place, name));
  return 0;
}

Result<int> SandboxDeleteCommand(const Arguments& arguments) {
  const std::string name = TRY(SandboxNameOf(arguments, "sandbox delete"));
  std::optional<openshell::GatewayAddress> fleet = TRY(FleetOf(arguments));
  if (!fleet) return DeleteSandbox(arguments, name);
  if (arguments.Has("apply") || arguments.Has("json")) {
    return Usage("a sandbox on a gateway has no report here", "agentic-ci sandbox delete " + name);
  }
  TRY(openshell::DeleteFromFleet(*fleet, name));
  logging::Info("sandbox deleted", {{"sandbox", name}, {"gateway", fleet->where}});
  return 0;
}

Result<int> DeleteSandbox(const Arguments& arguments, const std::string& name) {
  session::Place place = TRY(session::Place::Open());
  session::Facts facts = TRY(place.Find(name));
  if (facts.backend == session::kPoolBackend) {
    if (arguments.Has("apply")) return Usage("a pool has no changes", "");
    TRY(session::DeletePool(place, name));
    logging::Info("pool deleted", {{"pool", name}});
    return 0;
  }
  session::DeleteRequest request{arguments.Has("apply"), arguments.Has("apply-ignored")};
  if (request.apply_ignored && !request.apply) {
    return Usage("--apply-ignored needs --apply", "--apply --apply-ignored");
  }
  session::EndReport report = TRY(session::Delete(place, name, request));
  const bool json = arguments.Has("json");
  Result<report::PostedReport> written = report::ReadReport(report.report_dir);
  if (written.ok()) {
    report::LogEnd(written.value().record, report.report_dir,
                   json ? report::TerminalStyle{} : report::FindTerminalStyle());
  } else {
    logging::Warn("the report cannot be shown", {{"why", written.error().what}});
  }
  logging::Info("sandbox deleted", {{"sandbox", name}, {"report", report.report_dir}});
  if (json) {
    constexpr size_t kRunJsonBytesMax = 16 << 20;
    const std::string text = TRY(sys::ReadFile(report.report_dir + "/run.json", kRunJsonBytesMax));
    TRY(Print(text));
  }
  return report.exit_code;
}

}  // namespace cli
