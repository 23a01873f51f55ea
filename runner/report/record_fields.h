// SPDX-License-Identifier: Apache-2.0
// The members of a report's records, each listed once with its name. An `Io` reads, writes or edits
// them: record_json.cc has these three.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/record_json.h"
#include "report/record_names.h"

namespace report {

template <typename Io>
void Fields(Io& io, EventRecord& event) {
  io.Field("forge", event.forge);
  io.Field("kind", event.kind);
  io.Field("repository", event.repository);
  io.Field("number", event.number);
  io.Field("actor", event.actor);
  io.Field("base_ref", event.base_ref);
  io.Field("base_sha", event.base_sha);
  io.Field("head_ref", event.head_ref);
  io.Field("head_sha", event.head_sha);
  io.Field("from_fork", event.from_fork);
  io.Field("run_url", event.run_url);
  io.Field("leg", event.leg);
}

template <typename Io>
void Fields(Io& io, TrustRecord& trust) {
  io.Field("level", trust.level);
  io.Field("reason", trust.reason);
}

template <typename Io>
void Fields(Io& io, PolicyRecord& policy) {
  io.Field("source", policy.source);
  io.Field("path", policy.path);
  io.Field("ref", policy.ref);
  io.Field("commit", policy.commit);
  io.Field("sha256", policy.sha256);
}

template <typename Io>
void Fields(Io& io, ImageRecord& image) {
  io.Field("reference", image.reference);
  io.Field("digest", image.digest);
  io.Field("manifest_digest", image.manifest_digest);
  io.Field("platform", image.platform);
  io.Field("signer", image.signer);
  io.Field("issuer", image.issuer);
  io.Field("signature", image.signature);
  io.Field("log_indices", image.log_indices);
  io.Field("warnings", image.warnings);
}

template <typename Io>
void Fields(Io& io, AgentRecord& agent) {
  io.Field("name", agent.name);
  io.Field("task", agent.task);
  io.Field("version", agent.version);
  io.Field("model", agent.model);
  io.Field("command", agent.command);
}

template <typename Io>
void Fields(Io& io, ControlRecord& control) {
  io.Field("name", control.name);
  io.Field("state", kControlNames, control.state);
  io.Field("note", control.note);
}

template <typename Io>
void Fields(Io& io, IsolationRecord& isolation) {
  io.Field("tier", isolation.tier);
  io.Field("uid", isolation.uid);
  io.List("controls", isolation.controls);
}

template <typename Io>
void Fields(Io& io, LimitRecord& limit) {
  io.Field("name", limit.name);
  io.Field("limit", limit.limit);
  io.Field("used", limit.used);
  io.Field("unit", limit.unit);
  io.Field("fired", limit.fired);
}

template <typename Io>
void Fields(Io& io, OutcomeRecord& outcome) {
  io.Field("kind", kOutcomeNames, outcome.kind);
  io.Field("limit", outcome.limit);
  io.Field("reason", outcome.reason);
  io.Field("exit_code", outcome.exit_code);
  io.Field("agent_status", outcome.agent_status);
}

template <typename Io>
void Fields(Io& io, UsageRecord& usage) {
  io.Field("model", usage.model);
  io.Field("turns", usage.turns);
  io.Field("tool_calls", usage.tool_calls);
  io.Field("input_tokens", usage.input_tokens);
  io.Field("output_tokens", usage.output_tokens);
  io.Field("cache_read_tokens", usage.cache_read_tokens);
  io.Field("cache_write_tokens", usage.cache_write_tokens);
  io.Field("cost_usd", usage.cost_usd);
  io.Field("cost_source", usage.cost_source);
  io.Field("priced_cost_usd", usage.priced_cost_usd);
  io.Field("unpriced_models", usage.unpriced_models);
  io.Field("agent_cost_usd", usage.agent_cost_usd);
  io.Field("agent_tokens", usage.agent_tokens);
  io.Field("complete", usage.complete);
}

template <typename Io>
void Fields(Io& io, ChangedFile& file) {
  io.Field("path", file.path);
  io.Field("old_path", file.old_path);
  io.Field("state", kFileNames, file.state);
  io.Field("old_mode", file.old_mode);
  io.Field("new_mode", file.new_mode);
  io.Field("binary", file.binary);
  io.Field("added_lines", file.added_lines);
  io.Field("removed_lines", file.removed_lines);
  io.Field("bytes", file.bytes);
}

template <typename Io>
void Fields(Io& io, ChangesRecord& changes) {
  io.Field("files", changes.files);
  io.Field("added_lines", changes.added_lines);
  io.Field("removed_lines", changes.removed_lines);
  io.Field("patch_bytes", changes.patch_bytes);
  io.Field("prefix", changes.prefix);
  io.Field("merged", changes.merged);
  io.Field("checkout", changes.checkout);
  io.Field("tree", changes.tree);
  io.Field("applied", changes.applied);
  io.Field("complete", changes.complete);
  io.Field("ignored_files", changes.ignored_files);
  io.Field("ignored_bytes", changes.ignored_bytes);
  io.Field("ignored_paths", changes.ignored_paths);
}

template <typename Io>
void Fields(Io& io, Finding& finding) {
  io.Field("source", kSourceNames, finding.source);
  io.Field("rule", finding.rule);
  io.Field("severity", kSeverityNames, finding.severity);
  io.Field("message", finding.message);
  io.Field("path", finding.path);
  io.Field("line", finding.line);
  io.Field("end_line", finding.end_line);
  io.Field("suggestion", finding.suggestion);
  io.Field("refuses", finding.refuses);
  io.Field("blob", finding.blob);
  io.Field("lines_sha256", finding.lines_sha256);
  io.Field("line_hash", finding.line_hash);
}

template <typename Io>
void Fields(Io& io, policy::Operation& operation) {
  io.Field("operation_type", operation.operation_type);
  io.Field("operation_name", operation.operation_name);
  io.Field("fields", operation.fields);
  io.Field("persisted_query", operation.persisted_query);
  io.Field("method", operation.method);
  io.Field("tool", operation.tool);
}

template <typename Io>
void Fields(Io& io, DeniedRequest& denied) {
  int port = denied.denial.port;
  io.Field("host", denied.denial.host);
  io.Field("port", port);
  io.Field("method", denied.denial.method);
  io.Field("path", denied.denial.path);
  io.Field("binary", denied.denial.binary);
  io.Field("protocol", denied.denial.protocol);
  io.List("operations", denied.denial.operations);
  io.Field("reason", denied.reason);
  io.Field("count", denied.count);
  io.Field("allow_line", denied.allow_line);
  io.Field("deny_rule", denied.deny_rule);
  denied.denial.port = port >= 0 && port <= 65535 ? static_cast<uint16_t>(port) : uint16_t{0};
}

template <typename Io>
void Fields(Io& io, FailedConnection& failed) {
  io.Field("host", failed.host);
  io.Field("port", failed.port);
  io.Field("reason", failed.reason);
  io.Field("count", failed.count);
}

template <typename Io>
void Fields(Io& io, CheckRecord& check) {
  io.Field("command", check.command);
  io.Field("outcome", kOutcomeNames, check.outcome);
  io.Field("status", check.status);
  io.Field("reason", check.reason);
  io.Field("ms", check.ms);
  io.Field("report", check.report);
  io.Field("output", check.output);
}

template <typename Io>
void Fields(Io& io, WaiverRecord& waiver) {
  io.Field("name", waiver.name);
  io.Field("reason", waiver.reason);
}

template <typename Io>
void Fields(Io& io, IdentityRecord& identity) {
  io.Field("provider", identity.provider);
  io.Field("issuer", identity.issuer);
  io.Field("subject", identity.subject);
  io.Field("audience", identity.audience);
  io.Field("expires", identity.expires);
}

template <typename Io>
void Fields(Io& io, BudgetRecord& budget) {
  io.Field("id", budget.id);
  io.Field("place", budget.place);
  io.Field("left_usd", budget.left_usd);
  io.Field("lowered", budget.lowered);
  io.Field("spent_usd", budget.spent_usd);
  io.Field("counted", budget.counted);
}

template <typename Io>
void Fields(Io& io, std::pair<std::string, int64_t>& phase) {
  io.Field("name", phase.first);
  io.Field("ms", phase.second);
}

template <typename Io>
void Fields(Io& io, RunFile& run) {
  RunRecord& record = run.record;
  io.Field("tool_version", record.tool_version);
  io.Field("kernel", record.kernel);
  io.Field("started_at_ms", record.started_at_ms);
  io.Field("finished_at_ms", record.finished_at_ms);
  io.Object("outcome", record.outcome);
  io.Object("event", record.event);
  io.Object("trust", record.trust);
  io.Object("policy", record.policy);
  io.Field("config_sha256", record.config_sha256);
  io.Object("image", record.image);
  io.Object("agent", record.agent);
  io.Field("credentials", record.credentials);
  io.Object("isolation", record.isolation);
  io.List("limits", record.limits);
  io.List("phases", record.phases_ms);
  io.Object("usage", record.usage);
  io.Object("changes", record.changes);
  io.List("checks", record.checks);
  io.List("findings", record.findings);
  io.List("denials", record.denials);
  io.Field("denials_dropped", record.denials_dropped);
  io.List("failures", record.failures);
  io.List("waivers", record.waivers);
  io.List("identities", record.identities);
  io.Object("budget", record.budget);
  io.Field("agent_text", run.agent_text);
  io.Field("agent_tail", run.agent_tail);
}

struct ChangesFile {
  ChangesRecord totals;
  std::vector<ChangedFile> files;
};

template <typename Io>
void Fields(Io& io, ChangesFile& changes) {
  io.Object("totals", changes.totals);
  io.List("files", changes.files);
}

}  // namespace report
