// SPDX-License-Identifier: Apache-2.0
#include "run/collect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "base/log.h"
#include "base/sys.h"
#include "change/apply.h"
#include "change/raw/raw_changes.h"
#include "change/sections/patch_section.h"
#include "report/agent_findings.h"
#include "report/event_lines.h"
#include "report/findings.h"
#include "report/terminal/end_log.h"
#include "report/verdict.h"
#include "report/write.h"
#include "run/signals.h"
#include "run/trusted/config.h"

namespace run {
namespace {

constexpr size_t kRunJsonBytesMax = 16 << 20;
// The bytes of a file; in a longer one, lines are not followed.
constexpr size_t kLinesBytesMax = 16 << 20;
constexpr size_t kHashedBytesMax = 4 << 20;  // Likewise, for GitHub's fingerprints.

// Keeps a patch for which there is no room in the report. Returns its path; empty if that failed.
std::string KeepPatch(const std::string& patch) {
  const std::string set = sys::Environment("TMPDIR").value_or("");
  std::string path = (set.empty() ? "/tmp" : set) + "/agentic-ci-changes.XXXXXX.patch";
  constexpr int kSuffixBytes = 6;
  const Fd file(::mkostemps(path.data(), kSuffixBytes, O_CLOEXEC));
  if (file.valid() && sys::WriteAll(file.get(), patch).ok()) return path;
  if (file.valid()) (void)::unlink(path.c_str());
  return {};
}

// Each without its newline.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
  }
  return lines;
}

// Notes what findings are found again by: GitHub's fingerprint of their first line and, where the
// checkout is not `head_sha`, what their lines say, since the lines of that commit may be
// elsewhere. Only for files that git has, which do not hold the checkout's secrets.
void NoteLines(const change::Repository& git, const std::string& head_sha,
               std::vector<report::Finding>& findings) {
  Result<std::string> commit = git.ResolveCommit("HEAD");
  const bool may_move = commit.ok() && commit.value() != head_sha;
  std::map<std::string, std::vector<report::Finding*>> by_path;
  for (report::Finding& finding : findings) {
    if (!finding.path.empty()) by_path[finding.path].push_back(&finding);
  }
  for (const auto& [path, there] : by_path) {
    const std::optional<std::string> text = git.TrackedBlob(path);
    if (!text || text->size() > kLinesBytesMax) continue;
    const std::vector<std::string_view> lines = LinesOf(may_move ? std::string_view(*text) : "");
    std::set<int> starts;
    for (const report::Finding* finding : there) starts.insert(std::max(1, finding->line));
    if (text->size() > kHashedBytesMax) starts.clear();
    const std::map<int, std::string> hashes = report::LineHashes(*text, starts);
    for (report::Finding* finding : there) {
      const auto hash = hashes.find(std::max(1, finding->line));
      if (hash != hashes.end()) finding->line_hash = hash->second;
      if (!may_move || finding->line == 0) continue;
      const auto first = static_cast<size_t>(finding->line - 1);
      const size_t count = report::LinesInDigest(finding->line, finding->end_line);
      if (first >= lines.size() || lines.size() - first < count) continue;
      finding->blob = git.TrackedId(path).value_or("");
      finding->lines_sha256 = report::LinesDigest(std::span(lines).subspan(first, count));
    }
  }
}

// Returns the paths that `changes` makes what they are in the commit `merged`.
std::set<std::string> MergedPaths(const change::Repository& git, const std::string& merged,
                                  const change::ChangeSet& changes) {
  std::set<std::string> paths;
  Result<std::vector<change::PatchSection>> sections = change::ReadSections(changes.patch);
  if (!sections.ok() || sections.value().size() != changes.files.size()) return paths;
  auto equal = [&](const std::string& path, int mode, const std::string& id) {
    auto there = git.FileAtRef(merged, path);
    if (!there.ok()) return false;
    if (mode == 0 || !there.value()) return mode == 0 && !there.value();
    return there.value()->mode == mode && there.value()->blob == id;
  };
  for (size_t i = 0; i < changes.files.size(); ++i) {
    const change::FileChange& file = changes.files[i];
    const std::string path = git.prefix() + file.path;
    if (equal(path, file.new_mode, sections.value()[i].new_id)) paths.insert(path);
    const std::string old_path = git.prefix() + file.old_path;
    if (!file.old_path.empty() && equal(old_path, 0, "")) paths.insert(old_path);
  }
  return paths;
}

// Returns the links of the checkout, which the agent's changes are not in.
Result<std::vector<change::ProtectedLink>> LinksOf(const Plan& plan) {
  const change::Repository* git = plan.checkout.git();
  std::vector<std::string> tracked;
  if (git != nullptr) tracked = TRY(git->TrackedLinks());
  return change::FindProtectedLinks(plan.checkout.top(), tracked);
}

// Returns the paths, from the repository's top, by which the file of `--policy` is read, if it lies
// there: as it is written, and with links followed.
std::vector<std::string> PolicyPaths(const Plan& plan) {
  std::vector<std::string> paths;
  if (plan.policy.record.source != "file") return paths;
  std::error_code failed;
  const std::filesystem::path named = std::filesystem::absolute(plan.policy.record.path, failed);
  for (const auto& place :
       {named.lexically_normal(), std::filesystem::weakly_canonical(named, failed)}) {
    const std::string path = place.string();
    const std::string above = plan.checkout.top() + "/";
    if (path.starts_with(above)) paths.push_back(path.substr(above.size()));
  }
  return paths;
}

}  // namespace

Status CheckRequired(const std::vector<sandbox::ControlName>& names,
                     const std::vector<sandbox::Control>& controls) {
  for (sandbox::ControlName name : names) {
    auto found =
        std::find_if(controls.begin(), controls.end(),
                     [&](const sandbox::Control& control) { return control.name == name; });
    const bool there = found != controls.end();
    if (there && found->state == sandbox::ControlState::kEnforced) continue;
    Error error{Code::kUnsupported,
                std::string(kConfigPath) + " requires '" + std::string(sandbox::TextOf(name)) +
                    "' to be enforced; here, " +
                    (there ? report::Render(found->state) + ": " + found->note
                           : "it is not part of this tier or of this run's limits")};
    error.hint = "agentic-ci doctor";
    return error;
  }
  return Ok();
}

Result<change::ChangeSet> CollectChanges(const change::ChangedTree& tree, const Plan& plan,
                                         Recorder& recorder) {
  const change::Repository* git = plan.checkout.git();
  change::ChangeSet changes = TRY(
      change::CaptureChanges(tree, plan.checkout.path, git, {}).Context("collecting the changes"));
  recorder.Note(changes, git == nullptr ? "" : git->prefix(), plan.merged);
  report::AgentFindings found;
  if (changes.taken_out) {
    const std::string tops[] = {plan.checkout.path, tree.seen_at};
    found = report::ParseAgentFindings(*changes.taken_out,
                                       std::span(tops).first(tree.seen_at.empty() ? 1 : 2));
  } else if (!changes.taken_out_fault.empty()) {
    found.mistakes = {report::kAgentFindingsFile + (": " + changes.taken_out_fault)};
  }
  if (git != nullptr) NoteLines(*git, recorder.record().event.head_sha, found.findings);
  recorder.Note(found);
  return changes;
}

Result<change::ChangeSet> CollectIgnored(change::ChangedTree tree, const change::ChangeSet& changes,
                                         const Plan& plan, Recorder& recorder) {
  tree.meanwhile.given = nullptr;  // It knows of no ignored files.
  change::ChangeSet found =
      TRY(change::CaptureChanges(tree, plan.checkout.path, plan.checkout.git(), {},
                                 change::Part::kIgnored)
              .Context("collecting the files that git ignores"));
  change::GateLimits gates = GatesOf(plan, found);
  // Both together may make a repository of a directory.
  for (const std::string& path : change::WrittenPaths(changes.files, gates.prefix)) {
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      gates.before[path.substr(0, begin == 0 ? 0 : begin - 1)].push_back(
          path.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  found = change::LeaveOutRefused(std::move(found), std::move(gates), &recorder.secrets());
  recorder.NoteLeftOut(found, report::kIgnoredRule, "not applied", report::Severity::kWarning);
  return found;
}

Status RecordFiles(change::ChangedTree tree, const Plan& plan, const ReportDirectory& directory,
                   const codec::SecretMask& secrets) {
  Fd record = TRY(sys::OpenAt(directory.lock.get(), report::kFilesFile,
                              O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0644));
  for (const sandbox::WorkspaceFile& file : plan.git.in_checkout) {
    tree.replaced[file.path] = file.gone ? std::nullopt : std::optional(file.content.get());
  }
  auto take = [&](const change::RawChange& change) {
    report::LeftFile file{secrets.Mask(change.path), "modified", change.content};
    if (change.kind == change::ChangeKind::kCreated) file.change = "created";
    if (change.kind == change::ChangeKind::kDeleted) file.change = "deleted";
    if (file.content && secrets.Finds(*file.content)) file.content.reset();
    return sys::WriteAll(record.get(), report::RenderLeftFile(file) + "\n");
  };
  const bool all = TRY(
      change::ListRawChanges(tree, plan.checkout.path, {}, take).Context("recording the files"));
  return all && tree.missing.empty()
             ? sys::WriteAll(record.get(), std::string(report::kFilesEnd) + "\n")
             : Ok();
}

std::string ChooseMerged(const Plan& plan, const std::vector<std::string>& commits) {
  const change::Repository* git = plan.checkout.git();
  if (git == nullptr || git->unborn()) return {};
  Result<std::string> base = git->ResolveCommit(plan.ref.ref);
  if (!base.ok()) return {};
  const bool named = std::find(commits.begin(), commits.end(), base.value()) != commits.end();
  return named && !git->HasInHistory("HEAD", base.value()) ? base.value() : "";
}

change::GateLimits GatesOf(const Plan& plan, const change::ChangeSet& changes) {
  change::GateLimits gates;
  const change::Repository* git = plan.checkout.git();
  if (git != nullptr) gates.prefix = git->prefix();
  if (!changes.files.empty()) {
    Result<std::vector<change::ProtectedLink>> links = LinksOf(plan);
    if (links.ok()) {
      gates.links = std::move(links).value();
    } else {
      gates.links_unknown = links.error().what;
    }
  }
  gates.before = change::ListDirectories(
      plan.checkout.top(),
      change::RepositoryCandidates(change::WrittenPaths(changes.files, gates.prefix)));
  if (!plan.merged.empty()) gates.merged = MergedPaths(*git, plan.merged, changes);
  gates.paths = plan.config.gates.paths;
  gates.policy = PolicyPaths(plan);
  if (plan.config.gates.files != 0) gates.files_max = plan.config.gates.files;
  if (plan.config.gates.bytes != 0) gates.patch_bytes_max = plan.config.gates.bytes;
  return gates;
}

report::OutcomeRecord JudgeRun(const Plan& plan, const AgentEnd& end, RunSigns signs,
                               const change::ChangeSet& changes, Recorder& recorder) {
  signs.nothing_changed = changes.files.empty() && changes.conflicts.empty() && changes.complete;
  recorder.Phase("changes");
  const change::Verdict verdict =
      change::JudgeChanges(changes, GatesOf(plan, changes), &recorder.secrets());
  recorder.Note(verdict);
  return DecideOutcome(end, signs, verdict);
}

Status FinishRun(report::OutcomeRecord outcome, const Request& request, const Collected& collected,
                 const std::string& checkout, bool in_git, Recorder& recorder) {
  recorder.Note(JudgeFindings(std::move(outcome), request.fail_on, recorder.record().findings));
  const bool succeeded = report::Succeeded(recorder.record().outcome.kind);
  if (!collected.applies || !succeeded) return Ok();
  if (!collected.changes.patch.empty()) {
    std::optional<change::Repository> git;
    if (in_git) git = TRY(change::Repository::Open(checkout));
    TRY(change::ApplyPatch(checkout, git ? &*git : nullptr, collected.changes)
            .Context("applying the changes"));
    recorder.NoteApplied();
  }
  TRY(change::ApplyPatch(checkout, nullptr, collected.ignored)
          .Context("applying the files that git ignores"));
  recorder.NoteIgnored(collected.ignored);
  return Ok();
}

report::TerminalStyle StyleOf(const Request& request) {
  return request.json || request.quiet ? report::TerminalStyle{} : report::FindTerminalStyle();
}

Result<int> Conclude(Status carried, const Request& request, ReportDirectory& directory,
                     Recorder& recorder) {
  // A signal before there was an agent to end: while an image was fetched.
  std::optional<EndCause> interrupted = carried.ok() ? std::nullopt : PendingEnd();
  if (interrupted) {
    AgentEnd end;
    end.kind = *interrupted;
    recorder.Note(DecideOutcome(end, {}, {}));
  } else if (!carried.ok()) {
    recorder.NoteFailure(carried.error());
  }
  const report::ReportInput& input = recorder.Finish();
  // In CI, what comes next is to read of this run.
  if (!carried.ok() && directory.has_earlier() && !IsInCi()) {
    TRY(directory.Restore());
    logging::Info("the run did not start: the report is still the earlier run's",
                  {{"report", directory.path}});
    if (interrupted) return input.record.outcome.exit_code;
    return std::move(carried).error();
  }
  Status written =
      report::WriteReport(directory.at(), input).Context("writing the report to " + directory.path);
  if (!written.ok()) {
    recorder.NoteFailure(written.error());
    const bool kept = report::WriteLess(directory.at(), recorder.Finish());
    Error error = std::move(written).Kind(ErrorKind::kReported).error();
    const std::string elsewhere = kept ? "" : KeepPatch(input.patch);
    if (!elsewhere.empty()) error.what += "; the changes are in " + elsewhere;
    return error;
  }
  const bool failed = !carried.ok() && carried.error().code != Code::kNothingToDo;
  if (failed && !interrupted) {
    Error error = std::move(carried).error();
    error.what = recorder.secrets().Mask(error.what);
    error.kind = ErrorKind::kReported;
    return error;
  }
  report::LogEnd(input.record, directory.path, StyleOf(request));
  if (request.json) {
    std::string json = TRY(sys::ReadFile(directory.at() + "/run.json", kRunJsonBytesMax));
    TRY(sys::WriteAll(STDOUT_FILENO, json));
  }
  return input.record.outcome.exit_code;
}

}  // namespace run
