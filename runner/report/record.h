// SPDX-License-Identifier: Apache-2.0
// The record of a run, as plain values: run.json is this file in JSON, with the same names. Text
// written by an agent or a pull request is kept as it came (its length is bounded on entry); each
// rendering neutralises it for its own medium.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advise/suggest.h"
#include "base/result.h"
#include "sandbox/limit/control.h"

namespace report {

// The event as CI described it. Everything is empty or 0 on a plain command line.
struct EventRecord {
  std::string forge;       // "github", "gitlab", "gitea"; may be empty.
  std::string kind;        // The forge's name for it: "pull_request", "merge_request_event", ...
  std::string repository;  // "owner/name".
  int64_t number = 0;      // The number of the pull or merge request.
  std::string actor;
  std::string base_ref;
  std::string base_sha;
  std::string head_ref;
  std::string head_sha;
  bool from_fork = false;
  std::string run_url;  // The address of the CI run, for links.
  // The leg of a matrix that this job is: "node: 20, os: linux"; empty outside of a matrix.
  std::string leg = {};
};

struct TrustRecord {
  std::string level;   // "trusted", "model" (a fork's, its model's credential alone), "untrusted".
  std::string reason;  // One line: why.
};

struct PolicyRecord {
  std::string source;  // "file", "repository", "image" or "default".
  std::string path;    // The path as a person would name it; empty for "default".
  std::string ref;     // The place it was read from: a ref's name, "worktree"; empty for "file".
  std::string commit;  // That ref's commit; empty if there is none.
  std::string sha256;  // Hex digest of the bytes read (of the built-in text for "default").
};

struct ImageRecord {  // All empty: the host's own root, read-only and masked.
  std::string reference;
  std::string digest;                    // The digest that the reference led to.
  std::string manifest_digest;           // The digest of the platform's manifest.
  std::string platform;                  // "linux/amd64".
  std::string signer;                    // An identity, or "key sha256:...".
  std::string issuer;                    // Empty for keys.
  std::string signature;                 // The place where it was found.
  std::vector<std::string> log_indices;  // Decimal, since they exceed what some JSON readers hold.
  std::vector<std::string> warnings;     // The differences between the run and what the image says.
};

struct AgentRecord {
  std::string name;     // The name as in --agent.
  std::string task;     // The task of the configuration; may be empty.
  std::string version;  // The version that it reports.
  std::string model;
  std::vector<std::string> command;  // The command that was started.
};

using sandbox::ControlState;

struct ControlRecord {
  std::string name;  // A text of sandbox::kControls.
  ControlState state = ControlState::kUnavailable;
  std::string note;  // "cgroup v2", "watchdog every 200 ms", ...
};

struct IsolationRecord {
  std::string tier;  // "namespaces" or "landlock"; of another backend, its name.
  std::string uid;   // Of the sandbox, in each of its records; 32 hexadecimal digits.
  std::vector<ControlRecord> controls;
};

struct LimitRecord {
  std::string name;             // sandbox::LimitRow::record.
  std::optional<double> limit;  // nullopt if off.
  std::optional<double> used;   // nullopt if not measured.
  std::string unit;             // "s", "bytes", "processes", "cpus", "tokens", "usd", "requests".
  bool fired = false;
};

enum class OutcomeKind {
  kSuccess,
  kAgentFailed,
  kTimedOut,
  kIdle,
  kLimit,      // `limit` says which: memory, disk, output, pids.
  kRefused,    // A gate refused the changes, or an image was not started.
  kUntrusted,  // Not started: its actor may not start a run. Never posted.
  kSkipped,    // Not started: the configuration has no task for this event. Not a failure.
  kBudget,     // Not started: a budget across runs is used up, or what is left is not known.
  kFindings,   // The agent ended well, and its findings reach the task's `fail_on`.
  kInterrupted,
  kTerminated,
  kSandboxLost,  // Its first process was killed, not by the run.
  kGatewayLost,
  kSetupFailed,
  kCredentialRefused,  // By the model's host.
};

struct OutcomeRecord {
  OutcomeKind kind = OutcomeKind::kSetupFailed;
  std::string limit;   // Only with kLimit.
  std::string reason;  // One line for a person; may be empty on success.
  int exit_code = 70;  // The exit code of the command line.
  std::optional<int>
      agent_status;  // The agent's own, 0-255; nullopt if it never ended or never started.
};

struct UsageRecord {
  std::string model;
  int64_t turns = 0;
  int64_t tool_calls = 0;
  int64_t input_tokens = 0;  // Without what came from a cache.
  int64_t output_tokens = 0;
  int64_t cache_read_tokens = 0;
  int64_t cache_write_tokens = 0;
  // The run's cost. nullopt if unknown, of a model without a price at least; the known part is in
  // `priced_cost_usd`.
  std::optional<double> cost_usd;
  bool complete = false;  // The agent reported its own totals; otherwise partial sums.
  // "gateway"; "gateway-estimate" if some answer did not say what it used; "agent" if the gateway
  // saw no model; empty without a figure.
  std::string cost_source = {};
  double priced_cost_usd = 0;
  std::vector<std::string> unpriced_models = {};
  std::optional<double> agent_cost_usd = {};  // The agent's own figure, from its own prices.
  // The agent's own sum of all four kinds, which may leave out requests beside the conversation.
  // nullopt if it does not count, or its output ended early.
  std::optional<int64_t> agent_tokens = {};

  // Of all four kinds.
  int64_t tokens() const {
    return input_tokens + output_tokens + cache_read_tokens + cache_write_tokens;
  }
};

enum class FileState { kCreated, kModified, kDeleted, kRenamed };

// One changed file. Paths are relative to the checkout, as bytes (file names need not be UTF-8).
struct ChangedFile {
  std::string path;
  std::string old_path;  // Only with kRenamed.
  FileState state = FileState::kModified;
  std::string old_mode;  // "100644", "100755", "120000"; empty if there is none.
  std::string new_mode;
  bool binary = false;
  int64_t added_lines = 0;
  int64_t removed_lines = 0;
  int64_t bytes = 0;  // Size afterwards.
};

struct ChangesRecord {
  int64_t files = 0;
  int64_t added_lines = 0;
  int64_t removed_lines = 0;
  int64_t patch_bytes = 0;
  bool applied = false;  // --apply put it into the checkout.
  bool complete = true;  // False if a bound cut the collection; the patch is not the whole.
  // The path from the repository's top to the checkout, "" or "directory/", that the paths of
  // changes and findings are relative to.
  std::string prefix = {};
  std::string merged = {};  // The commit of the base branch that the agent merged; may be empty.
  // Of a run that is attested: the commit that was checked out, and git's name of the tree that
  // the patch makes of it; empty where the checkout had other files than that.
  std::string checkout = {};
  std::string tree = {};
  // --apply-ignored put these into the checkout; `ignored_paths` has the first of them.
  int64_t ignored_files = 0;
  int64_t ignored_bytes = 0;
  std::vector<std::string> ignored_paths = {};
};

enum class Severity { kError, kWarning, kNote };
enum class FindingSource { kGate, kAgent };

// The rule of a finding about a branch, tag or stash that no patch carries.
inline constexpr char kLostRefRule[] = "git-ref";

// The rule of a finding about a file that both the agent and others changed (ConflictFile).
inline constexpr char kConflictRule[] = "conflict";

// The rule of a finding about a file that git ignores and that --apply-ignored left out.
inline constexpr char kIgnoredRule[] = "ignored-file";

struct Finding {
  FindingSource source = FindingSource::kGate;
  std::string rule;  // "secret", "protected-path", "too-many-files", ...: [a-z0-9-]+ for gates.
  Severity severity = Severity::kError;
  std::string message;
  std::string path;      // Relative to the checkout; empty if about the whole.
  int line = 0;          // From 1; 0 if unknown.
  bool refuses = false;  // The run was refused because of it.
  int end_line = 0;      // The last line it is about; 0 for `line` alone.
  // The replacement for its lines: whole lines, empty to remove them.
  std::optional<std::string> suggestion = {};
  // Set for a checkout that is not the commit under review, such as its merge with the base: git's
  // name of the file's blob, and LinesDigest() of the lines. Empty otherwise, and if git does not
  // have the file.
  std::string blob = {};
  std::string lines_sha256 = {};
  // The line's fingerprint by GitHub's reckoning (LineHashes); empty if git does not have the file.
  std::string line_hash = {};
};

// Requests the gateway refused, equal ones counted once.
struct DeniedRequest {
  advise::Denial denial;
  std::string reason;  // The gateway's.
  int64_t count = 1;
  std::string allow_line;  // advise::SuggestLine; empty if nothing can allow it.
  std::string deny_rule;   // "file:line:col" of the deny rule that refused it, if one did.
  bool by_policy = false;  // The policy's answer, so another policy may allow it. Not in run.json.
};

// A connection that the policy allowed and that led nowhere: to a name that does not resolve, or a
// server that is not there or not trusted. Equal ones counted once.
struct FailedConnection {
  std::string host;
  int port = 0;
  std::string reason;  // The gateway's.
  int64_t count = 1;
};

// Requests that the policy allowed, equal ones counted once. Not in run.json.
struct AllowedRequest {
  std::string host;
  int port = 0;
  std::string method;  // Empty for a connection.
  std::string path;
  std::string binary;
  int64_t count = 1;
  std::string hosted = {};  // The tools of a model's provider that it used; nearly always empty.
};

// One step of the agent's own account of its work. Not in run.json.
struct TranscriptStep {
  enum class Kind { kText, kThinking, kTool };
  Kind kind = Kind::kText;
  std::string title = {};  // kTool: its name and the argument that says most.
  std::string text = {};   // The text that was said; for kTool, its input.
  std::string result = {};
  bool failed = false;       // True if the result of a kTool says so.
  bool nested = false;       // By an agent that the agent started.
  std::string tool = {};     // The name of a kTool.
  int64_t line = 0;          // The line of agent.jsonl that it began with, from 0.
  int64_t result_line = -1;  // The line with the result of a kTool; -1 if there is none.
};

// A command of the repository that was run over the agent's patch.
struct CheckRecord {
  std::string command;
  OutcomeKind outcome = OutcomeKind::kSetupFailed;
  std::optional<int64_t> status;  // The status as a shell reports it; nullopt if it was ended.
  std::string reason;             // The reason why it did not pass; or empty.
  int64_t ms = 0;
  std::string report;               // Its own report, below the run's: "checks/1".
  std::vector<std::string> output;  // The last lines of one that did not pass.
};

struct WaiverRecord {
  std::string name;
  std::string reason;
};

// A job's identity that a provider took in exchange for a credential: what its token said.
struct IdentityRecord {
  std::string provider;
  std::string issuer;
  std::string subject;
  std::string audience;
  int64_t expires = 0;  // Of that token, in seconds since 1970; 0 if it did not say.
};

// What the budgets across runs (`budget` of the configuration) meant for this one.
struct BudgetRecord {
  std::string id;     // The run's in the ledger, 32 hexadecimal digits; empty without such budgets.
  std::string place;  // Where the ledger is: kBudgetInFile, kBudgetOnForge; empty if nowhere.
  double left_usd = 0;   // What was left before the run; may be below zero.
  bool lowered = false;  // The run's cost limit is what was left.
  double spent_usd = 0;  // What is to be counted: the limit, until the cost is known.
  bool counted = false;  // It is in the ledger.
};
inline constexpr char kBudgetInFile[] = "file";
inline constexpr char kBudgetOnForge[] = "forge";

struct RunRecord {
  std::string tool_version;
  std::string kernel;         // `uname -r`.
  int64_t started_at_ms = 0;  // Since 1970.
  int64_t finished_at_ms = 0;
  EventRecord event;
  TrustRecord trust;
  PolicyRecord policy;
  std::string config_sha256;  // Hex digest of the repository's configuration; empty without one.
  ImageRecord image;
  AgentRecord agent;
  std::vector<std::string> credentials;  // Names of those that the gateway had.
  IsolationRecord isolation;
  std::vector<LimitRecord> limits;
  OutcomeRecord outcome;
  std::vector<std::pair<std::string, int64_t>> phases_ms;  // In order: {"policy", 3}, ...
  UsageRecord usage;
  ChangesRecord changes;
  std::vector<CheckRecord> checks;
  std::vector<Finding> findings;
  std::vector<DeniedRequest> denials;
  int64_t denials_dropped = 0;  // Lines of the event file that were odd or beyond the bound.
  std::vector<FailedConnection> failures;
  std::vector<WaiverRecord> waivers;
  std::vector<IdentityRecord> identities;  // The last one of each provider.
  BudgetRecord budget;
};

// Names as run.json spells them: "agent-failed", "enforced", ...
std::string Render(OutcomeKind kind);
std::string Render(ControlState state);
std::string Render(FileState state);
std::string Render(Severity severity);

// The directory of the report with the agent's versions of files that it did not change alone.
inline constexpr char kConflictsDirectory[] = "conflicts";

struct ConflictFile {
  std::string path;  // Relative to the checkout; valid (change::ValidPath()).
  bool executable = false;
  std::string bytes;
};

// Everything the report is made from.
struct ReportInput {
  RunRecord record;
  std::vector<ChangedFile> files;
  std::string patch;  // Bytes, as `git apply` takes them.
  std::vector<ConflictFile> conflicts = {};
  std::string agent_text;    // The agent's last word; may be empty.
  std::string job_key = {};  // forge::Event::JobKey(); may be empty.
  // The prompt as it was sent, masked, with the parts that strangers wrote between marks; empty
  // without one. Not in run.json.
  std::string prompt = {};
  // The text that the page shows in place of a withheld `patch`; or empty.
  std::string shown_patch = {};
  // The last lines of the agent's log, where the run did not succeed.
  std::vector<std::string> agent_tail = {};
  // The rest is only on the page: it stays in the files that it was read from.
  std::vector<AllowedRequest> allowed = {};
  int64_t allowed_dropped = 0;  // Beyond the bound.
  std::vector<TranscriptStep> transcript = {};
  int64_t transcript_dropped = 0;
  std::string log = {};  // The end of agent.log.
  bool log_cut = false;  // Something stood before it.
};

}  // namespace report
