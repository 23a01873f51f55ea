// SPDX-License-Identifier: Apache-2.0
#include "run/recorder.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/exit_code.h"
#include "base/sys.h"
#include "base/version.h"
#include "forge/open/open.h"
#include "report/event_lines.h"
#include "report/record_json.h"
#include "report/transcript.h"
#include "report/verdict.h"

namespace run {
namespace {

using sandbox::ControlName;
using sandbox::ControlState;
using sandbox::LimitName;
using sandbox::RowOf;

int64_t NowMs() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string Kernel() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

std::string Mode(int mode) {
  if (mode == 0) return {};
  char text[16];
  std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(mode));
  return text;
}

report::FileState State(change::ChangeKind kind) {
  switch (kind) {
    case change::ChangeKind::kCreated:
      return report::FileState::kCreated;
    case change::ChangeKind::kDeleted:
      return report::FileState::kDeleted;
    case change::ChangeKind::kRenamed:
      return report::FileState::kRenamed;
    case change::ChangeKind::kModified:
    case change::ChangeKind::kMode:
      break;
  }
  return report::FileState::kModified;
}

report::Severity SeverityOf(change::Severity severity) {
  switch (severity) {
    case change::Severity::kError:
      return report::Severity::kError;
    case change::Severity::kWarning:
      return report::Severity::kWarning;
    case change::Severity::kNote:
      break;
  }
  return report::Severity::kNote;
}

// Returns the bound; nullopt for 0, which is off.
std::optional<double> Bound(double value) {
  return value > 0 ? std::optional<double>(value) : std::nullopt;
}
std::optional<double> Bound(int64_t value) { return Bound(static_cast<double>(value)); }

std::optional<double> Number(std::optional<int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

}  // namespace

std::string DescribeConflict(const change::Conflict& conflict, const std::string& report_dir) {
  const std::string what = "not part of the patch: " + conflict.reason;
  if (conflict.mode == 0) return what + "; the agent removed it";
  const std::string place = (report_dir.empty() ? "the report's " : report_dir);
  return what + "; the agent's version is " + place + report::kConflictsDirectory + "/" +
         conflict.path;
}

std::vector<report::ConflictFile> ConflictFiles(const change::ChangeSet& changes) {
  std::vector<report::ConflictFile> files;
  for (const change::Conflict& conflict : changes.conflicts) {
    if (conflict.mode == 0) continue;
    files.push_back({conflict.path, conflict.mode == 0100755, conflict.bytes});
  }
  return files;
}

Recorder::Recorder(const Request& request)
    : request_(request), phase_began_(Deadline::Clock::now()) {
  report::RunRecord& record = input_.record;
  record.tool_version = kVersion;
  record.kernel = Kernel();
  record.started_at_ms = NowMs();
  record.isolation.uid = sys::RandomHex();
  NoteTask();
}

void Recorder::NoteTask() {
  input_.record.agent.name = request_.agent;
  input_.record.agent.task = request_.task;
  input_.record.isolation.tier =
      request_.backend.local ? TextOf(request_.isolation) : request_.backend.name;
}

void Recorder::Phase(const char* phase) {
  Deadline::Clock::time_point now = Deadline::Clock::now();
  auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(now - phase_began_);
  input_.record.phases_ms.emplace_back(phase, spent.count());
  phase_began_ = now;
}

void Recorder::Note(const forge::Event& event, const Trust& trust) {
  report::EventRecord& record = input_.record.event;
  if (event.forge != forge::ForgeKind::kNone) record.forge = forge::FactsOf(event.forge).name;
  record.kind = event.name;
  record.repository = event.repository;
  record.number = event.proposal_number;
  record.actor = event.actor;
  record.base_ref = event.base_ref;
  record.base_sha = event.base_sha;
  record.head_ref = event.head_ref;
  record.head_sha = event.head_sha;
  record.from_fork = event.head_origin == forge::HeadOrigin::kFork;
  record.run_url = event.run_url;
  record.leg = event.leg;
  input_.job_key = event.JobKey(input_.record.agent.task);
  input_.record.trust = {trust.trusted ? "trusted"
                         : trust.model ? "model"
                                       : "untrusted",
                         trust.reason};
}

void Recorder::NoteAbout(const std::string& path, const std::string& rule,
                         const std::string& what) {
  report::Finding finding;
  finding.rule = rule;
  finding.severity = report::Severity::kNote;
  finding.message = what;
  finding.path = path;
  Note(std::move(finding));
}

void Recorder::NoteHead(const std::string& commit) { input_.record.event.head_sha = commit; }

void Recorder::NoteControl(ControlName name, ControlState state, std::string note) {
  input_.record.isolation.controls.push_back(
      {std::string(sandbox::TextOf(name)), state, std::move(note)});
}

void Recorder::Note(const gateway::TakenIdentity& identity) {
  std::vector<report::IdentityRecord>& all = input_.record.identities;
  std::erase_if(all, [&](const auto& one) { return one.provider == identity.provider; });
  const gateway::JwtFacts& facts = identity.facts;
  all.push_back({identity.provider, facts.issuer, facts.subject, facts.audience, facts.expires});
}

void Recorder::Note(const std::vector<sandbox::Control>& controls) {
  for (const sandbox::Control& control : controls) {
    NoteControl(control.name, control.state, control.note);
  }
}

void Recorder::Note(const gateway::EgressProxy& proxy) {
  std::string note = proxy.Shown() + ", for connections to other ports than 80";
  if (proxy.by_name()) note += "; it resolves names, and their addresses are not checked here";
  NoteControl(ControlName::kEgressProxy,
              proxy.by_name() ? ControlState::kEmulated : ControlState::kEnforced, std::move(note));
}

void Recorder::Note(const sandbox::ConnectWatch& connects, const caller::ProgramLinks& links) {
  std::string note = connects.descriptor() >= 0 ? "identified when it connects"
                                                : "searched for among all processes of the sandbox";
  for (const std::string& warning : links.warnings) note += "; not followed: " + warning;
  NoteControl(ControlName::kProgramIdentity, ControlState::kEnforced, std::move(note));
  if (connects.descriptor() >= 0) return;
  NoteControl(
      ControlName::kDirectoryRenames, ControlState::kUnavailable,
      "a directory of the checkout cannot be renamed (EXDEV) without seccomp user notification");
}

void Recorder::NotePrograms(const std::string& report_dir) {
  int64_t count = 0;
  Result<bool> all = report::ForEachProgram(report_dir, [&](const auto&) { ++count; });
  const bool kept = all.ok() && all.value();
  std::string note = std::to_string(count) + " programs in " + report::kProgramsFile;
  if (!kept) note += "; not every one, or not its path or all arguments";
  if (!kept && count == 0) {
    note = "this host does not let the agent be followed (ptrace), or the record was not written";
  }
  NoteControl(ControlName::kProgramRecord,
              kept ? ControlState::kEnforced : ControlState::kUnavailable, std::move(note));
}

void Recorder::NoteLimit(LimitName name, std::optional<double> bound, std::optional<double> used,
                         const AgentEnd& end) {
  const sandbox::LimitRow& row = RowOf(name);
  input_.record.limits.push_back(
      {std::string(row.record), bound, used, std::string(row.unit), end.kind == name});
}

void Recorder::Note(const AgentEnd& end, sandbox::Sandbox& sandbox) {
  const sandbox::Cgroup& cgroup = sandbox.cgroup();
  const sandbox::SandboxLimits& set = sandbox.limits();
  std::optional<double> cpu_s;
  if (end.agent_cpu) cpu_s = std::chrono::duration<double>(*end.agent_cpu).count();
  NoteTimes(end);
  NoteLimit(LimitName::kMemory, Bound(set.memory_bytes), Number(cgroup.MemoryPeakBytes()), end);
  NoteLimit(LimitName::kCpus, Bound(set.cpus), std::nullopt, end);
  NoteLimit(LimitName::kAgentCpu, Bound(set.cpu_s), cpu_s, end);
  NoteLimit(LimitName::kPids, Bound(set.pids), std::nullopt, end);
  NoteLimit(LimitName::kDisk, Bound(set.disk_bytes), static_cast<double>(sandbox.DiskPeakBytes()),
            end);
  if (set.lasting && sandbox.disk_filled()) input_.record.limits.back().fired = true;
  for (const sandbox::ProcessLimitRow& row : sandbox::kProcessLimits) {
    NoteLimit(row.limit, Bound(set.*row.member), std::nullopt, end);
  }
  NoteLimit(LimitName::kOutput, Bound(request_.output_bytes), static_cast<double>(end.output_bytes),
            end);
  NoteSummary(end);
}

void Recorder::NoteTimes(const AgentEnd& end) {
  NoteLimit(LimitName::kTimeout, Bound(request_.timeout_s), static_cast<double>(end.wall_ms) / 1000,
            end);
  NoteLimit(LimitName::kIdle, Bound(request_.idle_timeout_s), std::nullopt, end);
}

void Recorder::Note(const AgentEnd& end) {
  NoteTimes(end);
  NoteLimit(LimitName::kMemory, Bound(request_.memory_bytes), std::nullopt, end);
  NoteLimit(LimitName::kCpus, Bound(request_.cpus), std::nullopt, end);
  NoteLimit(LimitName::kOutput, Bound(request_.output_bytes), static_cast<double>(end.output_bytes),
            end);
  NoteSummary(end);
}

void Recorder::NoteDisk(const AgentEnd& end) {
  NoteLimit(LimitName::kDisk, Bound(request_.disk_bytes), std::nullopt, end);
}

void Recorder::NoteSummary(const AgentEnd& end) {
  const agent::AgentSummary& summary = end.summary;
  input_.agent_text = summary.result_text;
  input_.agent_tail = end.tail;
  line_times_ms_ = end.line_times_ms;
  if (end.output_lost) {
    NoteControl(ControlName::kAgentOutput, ControlState::kUnavailable,
                "some of the agent's output is missing in its files: they could not be written");
  }
  if (!summary.agent_version.empty()) input_.record.agent.version = summary.agent_version;
  input_.record.agent.model = summary.model;
  report::UsageRecord& usage = input_.record.usage;
  usage.model = summary.model;
  usage.turns = summary.turns;
  usage.tool_calls = summary.tool_calls;
  usage.input_tokens = summary.tokens.input;
  usage.output_tokens = summary.tokens.output;
  usage.cache_read_tokens = summary.tokens.cache_read;
  usage.cache_write_tokens = summary.tokens.cache_write;
  usage.agent_cost_usd = summary.cost_usd;
  usage.cost_usd = summary.cost_usd;
  usage.cost_source = summary.cost_usd ? "agent" : "";
  usage.complete = summary.saw_result;
  const agent::Tokens& tokens = summary.tokens;
  const int64_t sum = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
  if (summary.saw_result && sum > 0) usage.agent_tokens = sum;
}

void Recorder::Note(const AgentEnd& end, const gateway::Gateway& gateway) {
  std::chrono::duration<double> spent =
      gateway.ProcessorTime() + std::chrono::milliseconds(end.supervisor_ms);
  NoteLimit(LimitName::kRunnerCpu, static_cast<double>(request_.runner_cpu_s), spent.count(), end);
}

void Recorder::NoteRunnerLimit() {
  for (report::LimitRecord& limit : input_.record.limits) {
    if (limit.name != RowOf(LimitName::kRunnerCpu).record) continue;
    limit.used = limit.limit;
    limit.fired = true;
  }
}

void Recorder::Note(const report::ModelUse& use, const gateway::BudgetLimits& limits) {
  auto limit = [&](LimitName name, double bound, std::optional<double> used) {
    const sandbox::LimitRow& row = RowOf(name);
    input_.record.limits.push_back({std::string(row.record), Bound(bound), used,
                                    std::string(row.unit), use.exhausted == row.record});
  };
  int64_t tokens =
      use.input_tokens + use.output_tokens + use.cache_read_tokens + use.cache_write_tokens;
  limit(LimitName::kTokens, static_cast<double>(limits.tokens), static_cast<double>(tokens));
  limit(LimitName::kCost, limits.cost_usd, use.requests > 0 ? use.cost_usd : 0);
  limit(LimitName::kRequests, static_cast<double>(limits.requests),
        static_cast<double>(use.requests));
  limit(LimitName::kHostBytes, static_cast<double>(request_.host_bytes), std::nullopt);
  // An agent's own figures stand alone only where the gateway saw no model: they are its word.
  if (use.requests == 0) return;
  report::UsageRecord& usage = input_.record.usage;
  usage.cost_usd = use.cost_usd;
  usage.cost_source = use.estimated ? "gateway-estimate" : "gateway";
  usage.priced_cost_usd = use.priced_cost_usd;
  usage.unpriced_models = use.unpriced_models;
  if (usage.model.empty()) usage.model = use.model;
  usage.input_tokens = use.input_tokens;
  usage.output_tokens = use.output_tokens;
  usage.cache_read_tokens = use.cache_read_tokens;
  usage.cache_write_tokens = use.cache_write_tokens;
}

void Recorder::Note(const change::ChangeSet& changes, const std::string& prefix,
                    const std::string& merged) {
  report::ChangesRecord& record = input_.record.changes;
  record.prefix = prefix;
  record.merged = merged;
  for (const change::FileChange& file : changes.files) {
    input_.files.push_back({file.path, file.old_path, State(file.kind), Mode(file.old_mode),
                            Mode(file.new_mode), file.binary, file.additions, file.deletions,
                            file.bytes});
    record.added_lines += file.additions;
    record.removed_lines += file.deletions;
  }
  record.files = static_cast<int64_t>(changes.files.size());
  record.patch_bytes = static_cast<int64_t>(changes.patch.size());
  record.complete = changes.complete;
  input_.patch = changes.patch;
  input_.conflicts = ConflictFiles(changes);
  for (const change::Conflict& conflict : changes.conflicts) {
    report::Finding finding;
    finding.rule = report::kConflictRule;
    finding.severity = report::Severity::kWarning;
    finding.path = conflict.path;
    finding.message = DescribeConflict(conflict);
    input_.record.findings.push_back(std::move(finding));
  }
  NoteLeftOut(changes, "left-out", "not part of the patch", report::Severity::kNote);
}

void Recorder::NoteLeftOut(const change::ChangeSet& changes, const std::string& rule,
                           const std::string& what, report::Severity severity) {
  for (const change::LeftOut& left_out : changes.left_out) {
    report::Finding finding;
    finding.rule = rule;
    finding.severity =
        left_out.reason == change::kEnvironmentMade ? report::Severity::kWarning : severity;
    finding.path = left_out.path;
    finding.message = what + ": " + left_out.reason;
    input_.record.findings.push_back(std::move(finding));
  }
  const int64_t more = changes.left_out_count - static_cast<int64_t>(changes.left_out.size());
  if (more > 0) {
    report::Finding finding;
    finding.rule = rule;
    finding.severity = severity;
    finding.message = std::to_string(more) + " more paths are " + what;
    input_.record.findings.push_back(std::move(finding));
  }
}

void Recorder::NoteIgnored(const change::ChangeSet& ignored) {
  constexpr size_t kPathsMax = 1000;
  constexpr size_t kPathBytesMax = size_t{64} << 10;
  report::ChangesRecord& record = input_.record.changes;
  size_t path_bytes = 0;
  for (const change::FileChange& file : ignored.files) {
    // The deleted half of a file that a link replaces, or the reverse.
    if (file.kind == change::ChangeKind::kDeleted) continue;
    ++record.ignored_files;
    record.ignored_bytes += file.bytes;
    path_bytes += file.path.size();
    if (path_bytes > kPathBytesMax || record.ignored_paths.size() >= kPathsMax) continue;
    record.ignored_paths.push_back(file.path);
  }
}

void Recorder::Note(const report::AgentFindings& findings) {
  std::vector<report::Finding>& all = input_.record.findings;
  all.insert(all.end(), findings.findings.begin(), findings.findings.end());
  for (const std::string& mistake : findings.mistakes) {
    report::Finding finding;
    finding.rule = "findings-file";
    finding.message = "left out: " + mistake;
    finding.severity = report::Severity::kNote;
    all.push_back(std::move(finding));
  }
}

void Recorder::Note(const change::Verdict& verdict) {
  if (verdict.reveals_secret) {
    input_.patch.clear();
    input_.conflicts.clear();
  }
  for (const change::GateFinding& gate : verdict.findings) {
    report::Finding finding;
    finding.rule = gate.gate;
    finding.severity = SeverityOf(gate.severity);
    finding.message = gate.message;
    finding.path = gate.path;
    finding.line = static_cast<int>(gate.line);
    finding.refuses = gate.severity == change::Severity::kError;
    input_.record.findings.push_back(std::move(finding));
  }
}

void Recorder::Note(const report::DenialList& denials) {
  input_.record.denials = denials.denials;
  input_.record.denials_dropped = denials.dropped;
  input_.record.failures = denials.failures;
  input_.allowed = denials.allowed;
  input_.allowed_dropped = denials.allowed_dropped;
}

void Recorder::NoteAccount(const std::string& directory) {
  Result<report::Transcript> transcript = report::ReadTranscript(directory);
  if (transcript.ok()) {
    input_.transcript = std::move(transcript.value().steps);
    input_.transcript_dropped = transcript.value().dropped;
  }
  Result<std::string> log = report::ReadLogEnd(directory, &input_.log_cut);
  if (log.ok()) input_.log = std::move(log).value();
}

void Recorder::NoteFailure(const Error& error) {
  report::OutcomeRecord& outcome = input_.record.outcome;
  outcome.kind = untrusted_                         ? report::OutcomeKind::kUntrusted
                 : over_budget_                     ? report::OutcomeKind::kBudget
                 : error.code == Code::kNothingToDo ? report::OutcomeKind::kSkipped
                 : error.code == Code::kRefused     ? report::OutcomeKind::kRefused
                                                    : report::OutcomeKind::kSetupFailed;
  outcome.exit_code = static_cast<int>(ExitCodeOf(error.code));
  outcome.reason = error.what;
  if (!error.hint.empty()) outcome.reason += " (" + error.hint + ")";
}

const report::ReportInput& Recorder::Finish() {
  input_.record.finished_at_ms = NowMs();
  // The log of a successful agent is not of first interest.
  if (report::Succeeded(input_.record.outcome.kind)) input_.agent_tail.clear();
  // Once, for everything that is written: what has the form of a credential goes, too.
  auto mask = [this](std::string_view text) { return codec::RedactTokens(secrets_.Mask(text)); };
  for (report::Finding& finding : input_.record.findings) {
    // With a mask in it, it is not what the agent suggests.
    const bool whole = !finding.suggestion || mask(*finding.suggestion) == *finding.suggestion;
    if (!whole) finding.suggestion.reset();
  }
  report::EditTexts(mask, &input_);
  input_.prompt = mask(input_.prompt);
  // A patch that may be applied stays as it is: a secret that it does not add was in the
  // repository.
  if (secrets_.Finds(input_.patch)) input_.shown_patch = secrets_.Mask(input_.patch);
  return input_;
}

}  // namespace run
