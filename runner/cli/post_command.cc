// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "attest/proof.h"
#include "attest/statement.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/commands.h"
#include "cli/github.h"
#include "cli/output.h"
#include "cli/verify_bundle_command.h"
#include "codec/data/json.h"
#include "codec/text/nearest.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "forge/actions.h"
#include "forge/open/open.h"
#include "forge/open/token.h"
#include "forge/posted_part.h"
#include "post/outcome_text.h"
#include "post/pull_request.h"
#include "report/findings.h"
#include "report/read.h"
#include "run/host_proxy.h"
#include "run/trusted/config.h"
#include "run/trusted/posted_gates.h"

namespace cli {
namespace {

// Unless it is given, longer than all repetitions against a forge that recovers, and shorter than
// people wait for a comment.
Result<std::chrono::seconds> ReadLimit(const Arguments& arguments) {
  Result<int64_t> seconds = codec::ParseDuration(arguments.Get("timeout", "3m"));
  if (!seconds.ok()) return Error{Code::kUsage, "--timeout: " + seconds.error().what};
  if (seconds.value() > 0) return std::chrono::seconds(seconds.value());
  return Error{Code::kUsage, "--timeout: the minimum is 1s"};
}

Result<forge::Place> ReadPlace(const Arguments& arguments, const forge::Event& event) {
  forge::Place place;
  place.kind = forge::ForgeAt(arguments.Get("api-url", event.api_url), event.forge);
  const forge::Facts& facts = forge::FactsOf(place.kind);
  // Another forge's event names nothing here.
  const bool own = event.forge == place.kind;
  place.repository = arguments.Get("repository", own ? event.repository : "");
  const std::string form(facts.repository_form);
  if (place.repository.empty()) {
    return Error{Code::kSetup, "the event does not name a " + std::string(facts.repository),
                 "--repository " + form};
  }
  if (!facts.valid_repository(place.repository)) {
    return Error{Code::kUsage, "--repository: '" + place.repository + "' is not " + form};
  }
  if (own && place.repository == event.repository) place.project_id = event.project_id;
  place.number = own ? event.proposal_number : 0;
  if (!arguments.Has("number")) return place;
  Result<int64_t> number = codec::ParseCount(arguments.Get("number"));
  if (!number.ok()) return Error{Code::kUsage, "--number: " + number.error().what};
  place.number = number.value();
  return place;
}

// `task` is the report's own word: it tells results apart, and decides nothing.
post::Target TargetAt(forge::Place place, const Arguments& arguments, const forge::Event& event,
                      const std::string& task) {
  post::Target target;
  target.place = std::move(place);
  target.marker_key = arguments.Get("marker", event.JobKey(task));
  target.run_url = event.run_url;
  if (event.head_origin == forge::HeadOrigin::kBase) {
    target.head_sha = event.head_sha;
    target.head_ref = event.head_ref.empty() ? event.head_tag : "refs/heads/" + event.head_ref;
  }
  if (!event.run_url.empty()) target.full_text_at = "the artifacts of " + event.run_url;
  return target;
}

// `limit` is what the whole post has: a request that hangs leaves time for the others.
void SetOptions(const Arguments& arguments, std::chrono::seconds limit,
                forge::ClientOptions* options) {
  options->ca_file = arguments.Get("ca-file");
  options->proxy = run::HostProxy();
  options->dry_run = arguments.Has("dry-run");
  options->stall_seconds = static_cast<int>(std::clamp<int64_t>(limit.count() / 3, 1, 60));
}

Error UnknownPart(std::string_view word) {
  std::string nearest =
      codec::NearestName(word, {forge::kPostedParts.begin(), forge::kPostedParts.end()});
  return Error{Code::kUsage, "--what: unknown part '" + std::string(word) + "'",
               "--what " + (nearest.empty() ? "comment,review" : nearest)};
}

Status AddPart(std::string_view word, post::Parts* parts) {
  post::PatchWay way = word == "commits"  ? post::PatchWay::kCommits
                       : word == "branch" ? post::PatchWay::kBranch
                       : word == "pull-request" || word == "merge-request"
                           ? post::PatchWay::kPullRequest
                           : post::PatchWay::kNone;
  if (way != post::PatchWay::kNone) {
    if (parts->patch.way != post::PatchWay::kNone && parts->patch.way != way) {
      return Error{Code::kUsage,
                   "--what: the changes go to one place: commits, branch or pull-request",
                   "--what comment,review,pull-request"};
    }
    parts->patch.way = way;
    return Ok();
  }
  if (word == "statement") {
    parts->statement.emplace();
    return Ok();
  }
  bool* part = word == "comment"  ? &parts->comment
               : word == "review" ? &parts->review
               : word == "check"  ? &parts->check
               : word == "status" ? &parts->status
               : word == "sarif"  ? &parts->sarif
                                  : nullptr;
  if (part == nullptr) return UnknownPart(word);
  *part = true;
  return Ok();
}

// "comment,review": unknown words are refused, and so is what this forge's API does not have.
Result<post::Parts> ReadParts(const Arguments& arguments, const forge::Capabilities& can) {
  const std::string asked = arguments.Get("what", "comment,review");
  post::Parts parts;
  parts.comment = parts.review = false;
  std::string_view list = asked;
  while (!list.empty()) {
    std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), word.size() + 1));
    TRY(AddPart(word, &parts));
  }
  const bool lacks_checks = parts.check && !can.check_runs;
  if (lacks_checks || (parts.sarif && !can.code_scanning)) {
    return Error{Code::kUsage,
                 "--what: " + std::string(can.names) + (can.several ? " have no " : " has no ") +
                     (lacks_checks ? "check runs" : "code scanning"),
                 "--what comment,review,status"};
  }
  if (parts.statement && !can.statements) {
    return Error{Code::kUsage,
                 "--what: " + std::string(can.names) + " keeps no statements about runs",
                 "--what comment,review"};
  }
  parts.labels = arguments.All("label");
  for (const std::string& label : parts.labels) {
    if (!forge::ValidLabel(label)) {
      return Error{Code::kUsage, "--label: '" + label + "' is not a label"};
    }
  }
  return parts;
}

// Returns whether the event names no pull request, but a head that one may have.
bool AsksForNumber(const Arguments& arguments, const forge::Event& event,
                   const forge::Place& place) {
  return forge::FactsOf(place.kind).find_proposal != nullptr && place.number == 0 &&
         !arguments.Has("number") && event.name == "workflow_run" && !event.head_sha.empty() &&
         place.repository == event.repository;
}

Status CheckNumber(const post::Parts& parts, const forge::Place& place) {
  const forge::Capabilities& can = forge::FactsOf(place.kind).can;
  bool about_proposal = parts.comment || parts.review || (can.status_of_proposal && parts.status);
  about_proposal |= parts.patch.way == post::PatchWay::kCommits;
  if (!about_proposal || place.number > 0) return Ok();
  return Error{Code::kSetup, "the event does not name a " + std::string(can.proposal),
               "--number NUMBER"};
}

// Reads the gates from a commit of the base branch, never from the report or the checkout.
Result<change::GateLimits> ReadGates(forge::Forge& forge, const std::string& commit,
                                     const std::string& task, Deadline deadline) {
  auto read = [&](const std::string& path) { return forge.ReadFile(path, commit, deadline); };
  const std::optional<std::string> text = TRY(read(run::kConfigPath));
  if (!text) return run::PostedGates({}, task);
  auto read_named = [&](const std::string& path) -> Result<std::string> {
    std::optional<std::string> named = TRY(read(path));
    if (named) return *std::move(named);
    return Error{Code::kNotFound, "there is no " + path + " at " + commit};
  };
  const run::Config config = TRY(run::ParseConfig(*text, {run::kConfigPath, read_named}));
  return run::PostedGates(config, task);
}

// Reads where the agent's changes go. `forge` reads the configuration that says which paths they
// may change: from the base branch, never from the report or the checkout.
Status ReadPatchRequest(const Arguments& arguments, const forge::Event& event,
                        const post::Target& target, forge::Forge& forge, Deadline deadline,
                        post::PatchRequest* patch) {
  bool any = false;
  for (const char* name : {"branch", "title"}) any |= arguments.Has(name);
  if (any && patch->way != post::PatchWay::kBranch && patch->way != post::PatchWay::kPullRequest) {
    return Error{Code::kUsage, "--branch and --title are for --what branch and pull-request",
                 "--what comment,review,pull-request"};
  }
  patch->number = target.place.number;
  // A fork's branch is not this repository's, whatever it is called.
  bool own = event.head_origin == forge::HeadOrigin::kBase && event.forge == target.place.kind;
  if (own) patch->base = event.head_ref;
  patch->marker_key = target.marker_key;
  patch->run_url = target.run_url;
  if (own) patch->event_head = event.head_sha;
  patch->branch = arguments.Get("branch");
  patch->title = arguments.Get("title");
  if (!patch->branch.empty() && !forge::ValidRef(patch->branch)) {
    return Error{Code::kUsage, "--branch: '" + patch->branch + "' is not a branch name"};
  }
  if (patch->way != post::PatchWay::kNone && target.place.number == 0 && patch->base.empty()) {
    return Error{Code::kSetup, "the event names neither a pull request nor a branch",
                 "--number NUMBER"};
  }
  patch->read_gates = [&forge, deadline, task = arguments.Get("task")](const std::string& commit) {
    return ReadGates(forge, commit, task, deadline);
  };
  return Ok();
}

// Prints JSON in which a log's reader finds no command: it looks for "##[" anywhere in a line.
Status PrintJson(std::string json) {
  for (size_t at = json.find("##"); at != std::string::npos; at = json.find("##", at)) {
    json.replace(at, 1, "\\u0023");
  }
  return Print(json);
}

// Returns what the forge took nowhere; it is shown on the run's own page.
std::string Undelivered(const post::Outcome& outcome) {
  std::vector<forge::Annotation> annotations;
  for (const post::Remark& remark : outcome.undelivered) {
    annotations.push_back({post::LevelOf(remark.severity), "agentic-ci: " + remark.rule,
                           remark.message, remark.path, remark.line, remark.end_line});
  }
  for (const std::string& refused : outcome.refused) {
    annotations.push_back({forge::Level::kWarning, "agentic-ci", "not posted: " + refused, "", 0});
  }
  return forge::RenderAnnotations(annotations);
}

// Keeps what a run that did not start may say: nothing if its actor may not start one, since a
// stranger could replace any result by a comment; what is about the commit alone if there was
// nothing to do. Returns whether anything is left.
bool KeepSayable(report::OutcomeKind kind, post::Parts* parts) {
  const bool skipped = kind == report::OutcomeKind::kSkipped;
  if (!skipped && kind != report::OutcomeKind::kUntrusted) return true;
  post::Parts kept;
  kept.comment = kept.review = false;
  kept.check = skipped && parts->check;
  kept.status = skipped && parts->status;
  *parts = std::move(kept);
  return parts->check || parts->status;
}

// A fork's run that had a model and the token that posts do not share a job: what the agent might
// do there, if it got out, is bounded by the other job's rights. The other one names the pull
// request.
Status RefuseSameJob(const Arguments& arguments, const report::TrustRecord& trust) {
  if (trust.level != "model" || arguments.Has("number")) return Ok();
  return Error{Code::kRefused,
               "the run was for a fork and used a model: a job of its own must post its report",
               "--number NUMBER there, as in examples/github-forks"};
}

// Says why nothing is posted, and that this is not a failure.
Result<int> PostNothing(const Arguments& arguments, const forge::Event& event,
                        const report::PostedReport& posted) {
  TRY(WriteStepSummary(event, posted.summary_markdown));
  if (arguments.Has("dry-run")) return 0;
  const std::string& why = posted.record.outcome.reason;
  TRY(arguments.Has("json")
          ? PrintJson(codec::RenderJson(post::RenderOutcome({}).Set("not_posted", why)))
          : PrintLines("not posted: " + codec::NeutralLine(why, 2000)));
  return 0;
}

// Returns every finding, the agent's, the gates' and refused requests', as a line of a job's log:
// what is left where something could not be posted. "src/a.c:3: warning: text [rule]"
std::string FindingLines(const report::PostedReport& report) {
  constexpr size_t kLogLineBytesMax = 2000;
  std::string lines;
  for (const report::Finding& finding : report::ListFindings(report.record)) {
    const bool placed = !finding.path.empty();
    std::string where = finding.path;
    if (placed && finding.line > 0) where += ":" + std::to_string(finding.line);
    if (placed) where += ": ";
    std::string level = finding.refuses ? "refused" : report::Render(finding.severity);
    lines += codec::NeutralLine(where + level + ": " + finding.message + " [" + finding.rule + "]",
                                kLogLineBytesMax) +
             "\n";
  }
  return lines;
}

// Prints those lines, in which no word of theirs is a command.
Status PrintFindings(const report::PostedReport& posted, bool reads_commands) {
  const std::string lines = FindingLines(posted);
  if (!reads_commands) return Print(lines);
  const std::string word = sys::RandomHex();
  return Print(forge::RenderStopCommands(word) + lines + forge::RenderResumeCommands(word));
}

// Returns `error` after the findings went to the job's log, since nothing can be posted.
Error WithoutToken(const Arguments& arguments, Error error) {
  Result<report::PostedReport> posted = report::ReadReport(arguments.operands.front());
  if (!posted.ok()) return std::move(posted).error();
  if (!arguments.Has("json") && !arguments.Has("dry-run")) {
    Status printed = Print(FindingLines(posted.value()));
    if (!printed.ok()) return std::move(printed).error();
  }
  return error;
}

// Returns the token that posts. Without one, the findings go to the job's log where the forge has
// them elsewhere.
Result<forge::PostingToken> TakeToken(const Arguments& arguments, const forge::Facts& facts,
                                      const forge::ClientOptions& options,
                                      const std::string& repository, const post::Parts& parts,
                                      Deadline deadline) {
  Result<forge::PostingToken> token = forge::TakePostingToken(
      sys::Environment, facts, options, repository, post::PermissionsOf(parts), deadline);
  if (token.ok() || facts.findings_elsewhere.empty()) return token;
  return WithoutToken(arguments, std::move(token).error());
}

// Reads the report again, with a link to its page where the forge knows that.
Result<report::PostedReport> WithPage(const forge::Facts& facts, const Arguments& arguments,
                                      const forge::Event& event, forge::Client& client,
                                      Deadline deadline) {
  const std::string& directory = arguments.operands.front();
  report::SummaryOptions links = LinksOf(event);
  if (facts.find_page != nullptr)
    links.report_url = facts.find_page(client, sys::Environment, event, directory, deadline);
  return report::ReadReport(directory, links);
}

// Reads the report's signed statement, and verifies nothing. Without one that can be read, the
// bundle is empty.
forge::StatementUpload ReadStatementOf(const std::string& directory) {
  Result<std::string> bundle =
      sys::ReadBeneath(directory, report::kStatementFile, attest::kProofBytesMax);
  if (!bundle.ok()) return {};
  const Result<attest::Statement> statement = attest::ReadUnverified(bundle.value());
  if (!statement.ok()) return {};
  return {std::move(bundle).value(), attest::PredicateType(),
          statement.value().DigestOf("run.json")};
}

// The run of CI behind an address; GitHub's has the attempt behind it.
std::string RunOf(const std::string& url) { return url.substr(0, url.find("/attempts/")); }

// Checks that the report in `directory` is the one of a signed statement about a run of the event's
// workflow.
Status RequireRun(const Arguments& arguments, const forge::Event& event,
                  const std::string& directory) {
  if (!arguments.Has("require-run")) return Ok();
  sigstore::VerifyOptions options =
      TRY(ReadAcceptedSigner("post --require-run", arguments, ReadNamedFile));
  options.predicate_types = {attest::PredicateType()};
  const std::optional<sigstore::TrustedRoot> root = TRY(ReadTrustedRoot(arguments, ReadNamedFile));
  const Fd report = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("reading the report"));
  const std::string bundle =
      TRY(sys::ReadBeneath(directory, report::kStatementFile, attest::kProofBytesMax)
              .Context("reading the statement about the run"));
  const attest::Proof proof =
      TRY(attest::VerifyProof(bundle, options, root ? *root : sigstore::EmbeddedTrustedRoot()));
  const std::vector<attest::Unmet> unmet =
      TRY(attest::CompareReport(proof.statement, report.get()));
  if (!unmet.empty()) {
    return Error{Code::kRefused, "the report is not the run's: " + unmet.front().why};
  }
  const std::string stated = proof.statement.TextAt("run.invocation");
  if (!event.run_url.empty() && RunOf(stated) == RunOf(event.run_url)) return Ok();
  if (event.run_url.empty()) {
    return Error{Code::kSetup, "the CI system does not say which run this job is of"};
  }
  return Error{Code::kRefused,
               "the report is of another run: " + (stated.empty() ? "one outside of CI" : stated)};
}

// Says what was posted, to the job's outputs and to the caller.
Result<int> EndPost(const Arguments& arguments, const forge::Event& event,
                    const report::PostedReport& posted, post::Outcome outcome) {
  TRY(WriteStepSummary(event, posted.summary_markdown));
  TRY(WriteOutputs(event, {{"comment-url", outcome.comment.comment_url},
                           {"commit", outcome.patch.commit},
                           {"branch", outcome.patch.branch},
                           {"pull-request-url", outcome.patch.url}}));
  // If the post did nothing at all, the error says everything.
  const bool any = !outcome.comment.comment_url.empty() || !outcome.patch.commit.empty() ||
                   outcome.delivered.on_lines + outcome.delivered.on_files > 0 ||
                   !outcome.made.empty();
  if (any || outcome.ended.ok()) {
    TRY(arguments.Has("json") ? PrintJson(codec::RenderJson(post::RenderOutcome(outcome)))
                              : PrintLines(post::OutcomeLines(outcome)));
  }
  if (outcome.ended.ok()) return 0;
  Error error = std::move(outcome.ended).error();
  if (any) error.what += " (" + post::PartsLine(outcome) + ")";
  // No line of a workflow gives the token of a fork's run more than reading.
  if (forge::ReadsWorkflowCommands(event.forge) && event.head_origin == forge::HeadOrigin::kFork &&
      error.kind == ErrorKind::kPermission) {
    error.hint = "post from a workflow of its own, as in examples/github-forks";
  }
  return error;
}

}  // namespace

Result<int> PostCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "post needs exactly one report directory",
                 "agentic-ci post REPORT-DIR"};
  }
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  forge::Place place = TRY(ReadPlace(arguments, event));
  const forge::Facts& facts = forge::FactsOf(place.kind);
  post::Parts parts = TRY(ReadParts(arguments, facts.can));
  Result<report::PostedReport> read =
      report::ReadReport(arguments.operands.front(), LinksOf(event));
  if (read.ok() && !KeepSayable(read.value().record.outcome.kind, &parts)) {
    return PostNothing(arguments, event, read.value());
  }
  parts.budget = read.ok() && post::CountsCost(read.value().record.budget);
  if (read.ok()) TRY(RefuseSameJob(arguments, read.value().record.trust));
  if (read.ok()) TRY(RequireRun(arguments, event, arguments.operands.front()));
  if (parts.statement) parts.statement = ReadStatementOf(arguments.operands.front());
  const bool asks = AsksForNumber(arguments, event, place);
  if (!asks) TRY(CheckNumber(parts, place));
  const std::chrono::seconds limit = TRY(ReadLimit(arguments));
  const Deadline deadline = Deadline::After(limit);
  forge::ClientOptions options = forge::OptionsFor(place, arguments.Get("api-url", event.api_url));
  SetOptions(arguments, limit, &options);
  forge::PostingToken token =
      TRY(TakeToken(arguments, facts, options, place.repository, parts, deadline));
  options.token = std::move(token.value);
  forge::Client client = TRY(forge::Client::Create(std::move(options)));
  const forge::Revocation revocation(facts, &client, token.of_app);
  if (asks) {
    place.number = TRY(facts.find_proposal(client, event, deadline));
    TRY(CheckNumber(parts, place));
  }
  if (read.ok()) read = WithPage(facts, arguments, event, client, deadline);
  const report::PostedReport posted = TRY(std::move(read));
  const post::Target target = TargetAt(place, arguments, event, posted.record.agent.task);
  std::unique_ptr<forge::Forge> forge = TRY(forge::Open(client, place));
  TRY(ReadPatchRequest(arguments, event, target, *forge, deadline, &parts.patch));
  post::Outcome outcome = post::PostToPullRequest(*forge, target, parts, posted, deadline);
  if (client.dry_run()) {
    TRY(std::move(outcome.ended));
    std::string lines;
    for (const codec::Json& request : client.planned())
      lines += codec::RenderJsonLine(request) + "\n";
    TRY(PrintJson(std::move(lines)));
    return 0;
  }
  if (!arguments.Has("json")) {
    const bool reads_commands = forge::ReadsWorkflowCommands(event.forge);
    const bool lost =
        !outcome.undelivered.empty() || (!facts.findings_elsewhere.empty() && !outcome.ended.ok());
    if (lost) TRY(PrintFindings(posted, reads_commands));
    if (reads_commands) TRY(Print(Undelivered(outcome)));
  }
  return EndPost(arguments, event, posted, std::move(outcome));
}

}  // namespace cli
