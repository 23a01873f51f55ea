// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "backend/openshell/attend.h"
#include "backend/openshell/client/host_variables.h"
#include "backend/openshell/event_line.h"
#include "backend/openshell/workspace.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/tree.h"
#include "change/given/given_files.h"
#include "codec/text/neutral.h"
#include "record/ocsf.h"
#include "record/shorthand.h"
#include "report/agent_findings.h"
#include "report/denials.h"
#include "report/event_lines.h"
#include "run/collect.h"
#include "run/outcome.h"
#include "run/run.h"
#include "run/signals.h"
#include "session/agent_run.h"

namespace openshell {
namespace {

using sandbox::ControlName;
using sandbox::ControlState;

using run::EndKind;

constexpr std::chrono::seconds kEventsTime{60};
// Fetching the changes may take as long as the agent might have.
constexpr std::chrono::seconds kFetchTimeMin{60};
constexpr std::chrono::seconds kFetchTimeMax{600};
constexpr std::chrono::seconds kProposalsTime{30};  // OpenShell derives them every ten.
constexpr std::chrono::seconds kProviderTime{60};
constexpr std::chrono::seconds kRemovalTime{60};
constexpr std::chrono::seconds kRemovalTimeLost{10};
constexpr size_t kEventLineBytesMax = 65536;
constexpr int64_t kDisorderMs = 1000;  // Records that come at once may be out of order by less.

ProgramPlaces PlacesOf(const std::string& checkout) {
  return {sys::Environment("PATH").value_or(""), checkout};
}

// One provider for each variable: OpenShell gives a sandbox each variable once.
Result<std::vector<Credential>> CredentialsOf(run::RunCredentials& credentials) {
  std::vector<Credential> all;
  std::map<std::string, size_t> known;
  for (gateway::BoundSecret& secret : credentials.secrets) {
    const bool everywhere = secret.path.empty() || secret.path == "**" || secret.path == "/**";
    if (secret.grant >= 0 || !secret.placement.signing_service.empty() || !everywhere) {
      return Error{Code::kUnsupported,
                   "the credential of " + secret.host +
                       " is exchanged, signed with, or for some paths only, which is not done with "
                       "OpenShell",
                   "--secret NAME@HOST"};
    }
    auto [at, added] = known.try_emplace(secret.name, all.size());
    const CredentialForm form = {secret.name, secret.placement.header, secret.placement.scheme};
    if (added) all.push_back({form, {}, std::move(secret.value)});
    all[at->second].hosts.push_back(secret.host);
  }
  return all;
}

// Returns whether podman limits what it is told to: without root, control groups of version 1 are
// not its to write, and it says nothing.
bool LimitsResources() {
  return !sys::Environment(kRootlessVariable) || sys::Exists("/sys/fs/cgroup/cgroup.controllers");
}

sandbox::Control Absent(ControlName name, const char* why) {
  return {name, ControlState::kUnavailable, why};
}

}  // namespace

Status CheckOptions(const run::Request& request) {
  auto is_there = [](std::string_view option) {
    constexpr auto kNotThere = std::to_array<std::string_view>(
        {"isolation", "ca-file", "learn", "watch-texts", "keep-policy"});
    const sandbox::LimitRow* limit = sandbox::FindLimit(option, &sandbox::LimitRow::option);
    if (limit != nullptr) return limit->openshell;
    return std::find(kNotThere.begin(), kNotThere.end(), option) == kNotThere.end();
  };
  for (const std::string& name : request.given) {
    if (is_there(name)) continue;
    return Error{Code::kUnsupported, "--" + name + " cannot be enforced by OpenShell",
                 "agentic-ci run --backend native --" + name + " ..."};
  }
  if (request.plan_only) {
    return Error{Code::kUnsupported, "--plan-only shows agentic-ci's own sandbox",
                 "agentic-ci run --backend native --plan-only"};
  }
  return Ok();
}

Job::~Job() {
  if (!sandbox_) return;
  Status deleted = sandbox_->Delete(lost_ ? kRemovalTimeLost : kRemovalTime);
  KeepLog();
  if (deleted.ok() || gateway_->local()) return;  // A gateway of its own takes all with it.
  const std::string why = sandbox_->name() + ": " + deleted.error().what;
  if (MayPass(deleted.error().code)) gateway_->KeepState();
  logging::Warn("the sandbox or a credential of it could not be deleted",
                {{"why", why}, {"later", LaterCommand(gateway_->state().path())}});
  stage_.recorder.Note(
      std::vector<sandbox::Control>{{ControlName::kRemoval, ControlState::kUnavailable, why}});
}

// Keeps the gateway's log in the report, as visible lines.
void Job::KeepLog() const {
  const std::string log = stage_.recorder.secrets().Mask(gateway_->Log());
  std::string lines;
  for (size_t from = 0; from < log.size();) {
    const size_t end = std::min(log.find('\n', from), log.size());
    lines += codec::NeutralLine(log.substr(from, end - from)) + "\n";
    from = end + 1;
  }
  if (lines.empty()) return;
  Status kept = sys::WriteFile(stage_.directory.at() + "/" + run::kGatewayLog, lines);
  if (!kept.ok()) logging::Warn("the gateway's log is not kept", {{"why", kept.error().what}});
}

// Returns the controls. Does not claim any that are not OpenShell's own doing.
std::vector<sandbox::Control> Job::Controls() const {
  const std::string by = "OpenShell " + gateway_->version();
  const bool limits = !gateway_->local() || LimitsResources();
  const std::string driver =
      by + (limits ? ", by its compute driver" : ": podman without root limits nothing here");
  auto given = [&](bool asked) {
    return asked && limits ? ControlState::kEnforced : ControlState::kUnavailable;
  };
  std::vector<sandbox::Control> controls = {
      {ControlName::kNetwork, ControlState::kEnforced, by + ", by its supervisor"},
      {ControlName::kSeccomp, ControlState::kEnforced, by},
      {ControlName::kLandlock, ControlState::kEmulated,
       by + ", as far as the kernel of its machine has it"},
      {ControlName::kMemory, given(stage_.request.memory_bytes > 0), driver},
      {ControlName::kCpu, given(stage_.request.cpus > 0), driver},
      {ControlName::kTime, ControlState::kEnforced, "by agentic-ci"},
      {ControlName::kOutput, ControlState::kEnforced, "by agentic-ci"},
  };
  for (const sandbox::Control& control :
       {Absent(ControlName::kPids, "not limited"),
        Absent(ControlName::kDisk, "bounded when the changes are fetched"),
        Absent(ControlName::kCpuTime, "not measured"),
        Absent(ControlName::kBudget, "responses of models are not read"),
        Absent(ControlName::kOverlay, "changes are found by comparing a copy with the checkout")}) {
    controls.push_back(control);
  }
  if (image_) {
    controls.push_back({ControlName::kImageSignature, ControlState::kEnforced,
                        "by agentic-ci; fetched by its digest"});
  } else {
    controls.push_back(Absent(ControlName::kImageSignature, "nothing says who signs the image"));
  }
  return controls;
}

Result<SandboxRequest> Job::RequestOf() {
  SandboxRequest wanted;
  wanted.policy = Narrowed(stage_.plan.policy.parsed.policy);
  wanted.credentials = TRY(CredentialsOf(stage_.plan.credentials));
  wanted.providers = stage_.request.gateway_providers;
  wanted.image = image_ ? image_->reference : stage_.request.image;
  wanted.cpus = stage_.request.cpus;
  wanted.memory_bytes = stage_.request.memory_bytes;
  wanted.approval_mode = stage_.request.approval_mode;
  wanted.labels = {{kManagedLabel, kManagedBy}, {"agentic-ci-run", gateway_->name()}};
  return wanted;
}

// Checks the image if the configuration or an option says who signs images. OpenShell's own default
// image has no name here, and cannot be verified.
Status Job::CheckImage() {
  const bool signer = !stage_.request.image_key.empty() || !stage_.request.image_identity.empty();
  if (stage_.plan.config.trust.rules.empty() && !signer) return Ok();
  if (stage_.request.image.empty()) {
    return Error{Code::kUsage, "the image is not named, and so cannot be verified",
                 "--image REGISTRY/NAME:TAG"};
  }
  image_ = TRY(run::CheckImage(stage_.request, stage_.plan.checkout.top(), &stage_.plan.config)
                   .Context("verifying the image"));
  stage_.recorder.Note(image_->record);
  stage_.recorder.Phase("image");
  return Ok();
}

// Looks for the providers that the gateway is to hold, before anything is made there.
Status Job::CheckProviders() const {
  for (const std::string& name : stage_.request.gateway_providers) {
    if (TRY(gateway_->client().HoldsProvider(name, Deadline::After(kProviderTime)))) continue;
    return Error{Code::kNotFound, "the gateway holds no provider '" + name + "'",
                 gateway_->invocation() + " provider list"};
  }
  return Ok();
}

Status Job::Start() {
  const int signals = stage_.signals.caught.get();
  TRY(CheckPlan());
  TRY(CheckImage());
  std::vector<run::KeptSecret> secrets = TRY(run::KeepSecrets(stage_.plan.credentials));
  stage_.recorder.secrets() = run::MaskOf(secrets);
  ProgramPlaces places = PlacesOf(stage_.plan.checkout.top());
  std::string where = stage_.request.gateway;
  if (where.empty()) where = ActiveGateway();
  if (where.empty()) where = kOwnGateway;
  if (where == kOwnGateway && !stage_.request.gateway_providers.empty()) {
    return Error{Code::kUsage, "--gateway-provider needs a gateway that holds it",
                 "--gateway NAME"};
  }
  for (const std::string& name : stage_.request.given) {
    if (where != kOwnGateway || LimitsResources() || (name != "memory" && name != "cpus")) continue;
    return Error{Code::kUnsupported,
                 "--" + name + " needs control groups of version 2 where podman runs without root"};
  }
  if (where != kOwnGateway) logging::Info("using a gateway of OpenShell", {{"gateway", where}});
  gateway_ =
      where == kOwnGateway
          ? TRY(Gateway::Start(std::move(places), signals))
          : TRY(Gateway::Attach(std::move(places), where, stage_.request.gateway_tls, signals));
  stage_.recorder.Note(Controls());
  TRY(run::CheckRequired(stage_.plan.config.require, Controls()));
  TRY(CheckProviders());
  stage_.recorder.Phase("gateway");

  const std::string stage = gateway_->state().path() + "/stage";
  began_ = sys::FileTime(stage_.plan.checkout.path);
  given_ = change::LookAtCheckout(stage_.plan.checkout.path, stage_.plan.checkout.git(), began_);
  hidden_ = HiddenPaths(stage_.plan, stage_.request, stage_.directory.path);
  TRY(StageWorkspace(stage_.plan, hidden_, stage_.request.disk_bytes, stage + "/workspace")
          .Context("copying the checkout"));
  SandboxRequest wanted = TRY(RequestOf());
  sandbox_.emplace(gateway_->Connect(), gateway_->name(), gateway_->state().path());
  TRY(sandbox_->Create(std::move(wanted)).Context("creating the sandbox"));
  TRY(sandbox_->FollowEvents().Context("following the sandbox's records"));
  TRY(sandbox_->Put(stage + "/workspace", "/sandbox/").Context("uploading the checkout"));
  Fd state = TRY(sys::Open(gateway_->state().path(), O_RDONLY | O_DIRECTORY));
  (void)sys::RemoveTree(state.get(), "stage");
  stage_.recorder.Phase("sandbox");
  stage_.directory.Start();
  return Ok();
}

Variables Job::Environment() const {
  Variables all = stage_.plan.agent.env;
  all.emplace_back("CI", "true");
  all.emplace_back("GIT_TERMINAL_PROMPT", "0");
  all.emplace_back("AGENTIC_CI_FINDINGS",
                   std::string(kWorkspace) + "/" + report::kAgentFindingsFile);
  for (const auto& [name, value] : stage_.plan.credentials.environment) {
    // OpenShell sets its own placeholders.
    if (value != gateway::PlaceholderFor(name)) all.emplace_back(name, value);
  }
  all.insert(all.end(), stage_.request.env.begin(), stage_.request.env.end());
  return all;
}

Result<run::AgentEnd> Job::Attend() {
  agent::AgentPlan agent = stage_.plan.agent;
  agent.env = Environment();
  run::OutputFiles files;
  files.raw = agent.streams_json() ? stage_.directory.agent_jsonl.get() : -1;
  files.readable = stage_.directory.agent_log.get();
  files.terminal = stage_.request.json ? STDERR_FILENO : STDOUT_FILENO;
  files.shown = run::ShownAt(files.terminal);
  files.style = run::StyleOf(stage_.request);
  files.may_be_codex = agent.may_be_codex;
  files.timed = stage_.request.times_lines;
  files.stream = agent.stream;
  Child command = TRY(sandbox_->Exec(session::AgentScript(agent)).Context("starting the agent"));
  logging::Info("agent started", {{"agent", stage_.request.agent}, {"isolation", "openshell"}});
  ProposalWatch proposals(gateway_->client(), gateway_->invocation(), sandbox_->name());
  return openshell::Attend(std::move(command), stage_.signals.caught.get(), gateway_->ended(),
                           *sandbox_, stage_.request, files, stage_.recorder.secrets(),
                           stage_.request.approval_mode == "manual" ? &proposals : nullptr)
      .Context("watching the agent");
}

// Asks the gateway for the sandbox; notes in `end` what is lost. What a command in the sandbox says
// of either is not trusted.
bool Job::IsThere(run::AgentEnd* end) {
  Result<bool> ready = sandbox_->IsReady();
  if (ready.ok() && ready.value()) return true;
  end->kind = ready.ok() ? EndKind::kSandboxLost : EndKind::kGatewayLost;
  if (!ready.ok()) lost_ = std::move(ready).error();
  return false;
}

// Returns whether the sandbox can be asked for what is in it. The gateway may have lost a command
// that failed, and may be silent behind one that a limit ended.
bool Job::IsReachable(run::AgentEnd* end) {
  if (end->kind == EndKind::kSandboxLost) return false;
  if (end->kind == EndKind::kGatewayLost) {
    // A command that broke off may have been all that was lost.
    run::AgentEnd asked = *end;
    return gateway_->ended() < 0 && IsThere(&asked);
  }
  return (end->kind == EndKind::kExited && end->status == 0) || IsThere(end);
}

Status Job::Record(std::string json, const std::string& shorthand, int64_t time_ms) {
  const codec::SecretMask& secrets = stage_.recorder.secrets();
  record::AddMember(record::RenderSandbox(stage_.recorder.record().isolation.uid), json);
  TRY(sys::WriteAll(stage_.directory.events_jsonl.get(), secrets.Mask(json) + "\n"));
  return sys::WriteAll(stage_.directory.events_log.get(),
                       record::RenderTime(time_ms) + " OCSF " + secrets.Mask(shorthand) + "\n");
}

// Turns OpenShell's lines into the report's records. The path of a program may hold line ends, and
// lines that read like OpenShell's own: what is not one of them, or is out of order, says so.
Status Job::TakeEvents() {
  std::string doubt = !reachable_ ? "the sandbox cannot be asked"
                      : !ended_   ? "the agent's processes may still run"
                                  : "";
  if (doubt.empty() && !sandbox_->AwaitEvents(Deadline::After(kEventsTime))) {
    doubt = "the last one did not come in time";
  }
  Status written = Ok();
  int64_t last_ms = 0;
  auto take = [&](std::string_view line, bool whole) {
    std::optional<LogLine> parsed = whole ? ParseLogLine(line) : std::nullopt;
    const bool read = parsed && !parsed->unread;
    const bool in_order = read && parsed->time_ms >= last_ms - kDisorderMs;
    if (doubt.empty() && !in_order) {
      doubt = read ? "a line is out of order" : "a line is not one of OpenShell's";
    }
    if (parsed) last_ms = std::max(last_ms, parsed->time_ms);
    if (!written.ok() || !parsed || !parsed->event) return;
    written = Record(record::RenderOcsf(*parsed->event, parsed->time_ms),
                     record::RenderShorthand(*parsed->event), parsed->time_ms);
  };
  if (doubt.empty() && !sandbox_->records_have_marks()) {
    doubt = "OpenShell " + gateway_->version() + " does not say when all have come";
  }
  TRY(report::ForEachLine(sandbox_->events_path(), kEventLineBytesMax, kRecordsBytesMax, take));
  TRY(std::move(written));
  const std::string said = stage_.recorder.secrets().Mask(sandbox_->SaidOfRecords());
  stage_.recorder.Note(std::vector<sandbox::Control>{
      {ControlName::kRecords,
       doubt.empty() && said.empty() ? ControlState::kEnforced : ControlState::kEmulated,
       !doubt.empty()  ? "records may be missing or forged: " + doubt
       : !said.empty() ? "all came, but records may be missing: openshell logs said: " + said
                       : "all of the sandbox's records came"}});
  return Ok();
}

// Notes that the changes could not be fetched. An agent that ended by itself did so in vain where
// the gateway, the sandbox or the limit on its size is why; what ended it otherwise stays.
Status Job::MissChanges(Error why, run::AgentEnd* end) {
  if (run::PendingEnd()) return why;
  run::AgentEnd asked = *end;
  const bool there = IsThere(&asked);
  if (end->kind == EndKind::kExited) {
    end->kind = asked.kind;
    if (there && why.code == Code::kUnsupported) end->kind = sandbox::LimitName::kDisk;
  }
  report::Finding finding;
  finding.rule = "not-collected";
  finding.severity = report::Severity::kWarning;
  finding.message =
      "what the agent changed was not collected: " + stage_.recorder.secrets().Mask(why.what);
  if (!there) finding.message += "; the sandbox or its gateway was lost then";
  stage_.recorder.Note(std::move(finding));
  return Ok();
}

Result<change::ChangeSet> Job::Changes() {
  const change::ChangedTree tree = TRY(Fetch());
  // Files that could not be read would look deleted.
  if (!tree.missing.empty()) return Error{Code::kIo, tree.missing};
  return change::CaptureChanges(tree, stage_.plan.checkout.path, stage_.plan.checkout.git(), {});
}

Result<change::ChangedTree> Job::Fetch() {
  Fd state = TRY(sys::Open(gateway_->state().path(), O_RDONLY | O_DIRECTORY));
  (void)sys::RemoveTree(state.get(), "changed");
  const std::string to = gateway_->state().path() + "/changed";
  TRY(sys::MakeDirectories(to, 0700));
  const auto time =
      std::clamp(std::chrono::seconds(stage_.request.timeout_s), kFetchTimeMin, kFetchTimeMax);
  const FetchLimits limits{stage_.request.disk_bytes, Deadline::After(time),
                           gateway_->client().cancel()};
  Fetched fetched =
      TRY(sandbox_->Get(kWorkspace, to, ended_, limits).Context("fetching the changes"));
  fetched_ = TRY(sys::Open(to, O_RDONLY | O_DIRECTORY));
  change::ChangedTree tree{fetched_.get()};
  tree.copied = timespec{};  // Every file came anew, so each is compared.
  tree.meanwhile.since = began_;
  tree.meanwhile.given = &given_;
  tree.not_copied = hidden_;
  for (const sandbox::WorkspaceFile& file : stage_.plan.replaced) {
    tree.replaced[file.path] = file.gone ? std::nullopt : std::optional(file.content.get());
  }
  tree.seen_at = kWorkspace;
  tree.taken_out = report::kAgentFindingsFile;
  tree.taken_out_bytes_max = report::kAgentFindingsBytesMax;
  if (!fetched.whole) {
    constexpr size_t kSaidBytesMax = 300;
    tree.missing = stage_.recorder.secrets().Mask("not all of it could be fetched: " +
                                                  codec::NeutralLine(fetched.said, kSaidBytesMax));
  }
  return tree;
}

void Job::NoteProposals() {
  if (stage_.request.approval_mode.empty()) return;
  if (sandbox_->AwaitEvents(Deadline::After(kEventsTime))) {
    sandbox_->AwaitProposals(Deadline::After(kProposalsTime));
  }
  Result<std::vector<Proposal>> proposals = sandbox_->Proposals();
  if (!proposals.ok()) {
    stage_.recorder.Note(std::vector<sandbox::Control>{
        {ControlName::kProposals, ControlState::kUnavailable, proposals.error().what}});
    return;
  }
  for (const Proposal& proposal : proposals.value()) {
    report::Finding finding;
    finding.rule = "policy-proposal";
    finding.severity = report::Severity::kNote;
    finding.message = proposal.status + ": " + proposal.endpoints + " for " + proposal.binaries;
    if (proposal.status == "pending") {
      finding.message += "; to accept it while the sandbox is there: " +
                         AcceptCommand(gateway_->invocation(), sandbox_->name(), proposal);
    }
    if (!proposal.clear) {
      finding.message = proposal.status + ": a proposal " + WhyUnclear(proposal) +
                        "; to see it while the sandbox is there: " +
                        ShowCommand(gateway_->invocation(), sandbox_->name());
    }
    stage_.recorder.Note(std::move(finding));
  }
}

Result<run::RunSigns> Job::CompleteRecords(run::AgentEnd* end) {
  stage_.recorder.Note(*end);
  stage_.recorder.Phase("agent");
  reachable_ = IsReachable(end);
  ended_ = reachable_ && sandbox_->EndProcesses();
  if (reachable_) NoteProposals();
  TRY(TakeEvents());
  run::RunSigns signs;
  // Judged by the agent's own words, since OpenShell's records have no answers.
  constexpr int kUnauthorized = 401;
  if (end->summary.api_error_status == kUnauthorized) signs.refused_by = "the model";
  return signs;
}

Result<std::optional<change::ChangedTree>> Job::Collect(run::AgentEnd* end) {
  std::optional<change::ChangedTree> tree;
  if (reachable_) {
    Result<change::ChangedTree> fetched = Fetch();
    if (fetched.ok()) {
      tree = std::move(fetched).value();
    } else {
      TRY(MissChanges(std::move(fetched).error(), end));
    }
  }
  stage_.recorder.NoteDisk(*end);  // It is bounded only there.
  return tree;
}

void Job::Explain(const run::AgentEnd& end, report::OutcomeRecord* outcome) const {
  if (end.kind == EndKind::kGatewayLost) {
    const bool refused = lost_ && lost_->code != Code::kTemporary;
    outcome->exit_code = static_cast<int>(refused ? ExitCodeOf(lost_->code) : ExitCode::kTemporary);
    outcome->reason = "OpenShell's gateway was lost; the report has what came before";
    if (lost_) outcome->reason += ": " + stage_.recorder.secrets().Mask(lost_->what);
  }
  if (end.kind == sandbox::LimitName::kDisk) {
    outcome->reason = "the checkout in the sandbox is larger than --disk, and was not fetched";
  }
}

run::Backend BackendOfRuns() {
  return {.name = "openshell",
          .local = false,
          .cancels = true,
          .check = CheckOptions,
          .make = [](const run::Stage& stage) -> std::unique_ptr<run::Enclosure> {
            return std::make_unique<Job>(stage);
          }};
}

}  // namespace openshell
