// SPDX-License-Identifier: Apache-2.0
#include "attest/statement.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <tuple>
#include <utility>

#include "attest/records.h"
#include "base/sys.h"
#include "base/version.h"
#include "codec/data/digest.h"
#include "codec/text/hex.h"
#include "report/read.h"
#include "report/record_names.h"
#include "sigstore/trust/merkle.h"

namespace attest {
namespace {

using codec::Json;

constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr size_t kStatementBytesMax = size_t{16} << 20;

// RFC 3339 with `Z`.
std::string Moment(int64_t ms_since_1970) {
  const std::time_t seconds = ms_since_1970 / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json StateWhen(const report::RunRecord& record) {
  const report::OutcomeRecord& end = record.outcome;
  Json outcome;
  outcome.Set("kind", report::Render(end.kind)).Set("limit", end.limit);
  outcome.Set("exitCode", end.exit_code);
  outcome.Set("agentStatus", end.agent_status ? Json(*end.agent_status) : Json());
  Json run;
  run.Set("startedAt", Moment(record.started_at_ms));
  run.Set("finishedAt", Moment(record.finished_at_ms));
  run.Set("invocation", record.event.run_url).Set("leg", record.event.leg);
  run.Set("task", record.agent.task).Set("sandbox", record.isolation.uid);
  run.Set("outcome", std::move(outcome));
  return run;
}

// Names of people and branches are left out: a statement in a log stays there for good.
Json StateSource(const report::RunRecord& record) {
  const report::EventRecord& event = record.event;
  Json source;
  source.Set("forge", event.forge).Set("repository", event.repository);
  source.Set("event", event.kind).Set("number", event.number);
  source.Set("baseCommit", event.base_sha).Set("headCommit", event.head_sha);
  source.Set("checkoutCommit", record.changes.checkout);
  source.Set("fromFork", event.from_fork).Set("trust", record.trust.level);
  return source;
}

Json StatePolicy(const report::RunRecord& record, const Events& events) {
  Json policy;
  policy.Set("source", record.policy.source).Set("path", record.policy.path);
  policy.Set("commit", record.policy.commit).Set("sha256", record.policy.sha256);
  policy.Set("configurationSha256", record.config_sha256);
  policy.Set("replaced", events.policies_replaced);
  return policy;
}

Json StateImage(const report::ImageRecord& image) {
  Json json;
  json.Set("reference", image.reference).Set("digest", image.digest);
  json.Set("manifestDigest", image.manifest_digest);
  json.Set("signer", image.signer).Set("issuer", image.issuer);
  return json;
}

Json StateAgent(const report::RunRecord& record) {
  Json agent;
  agent.Set("name", record.agent.name).Set("version", record.agent.version);
  const bool seen = record.usage.cost_source.starts_with("gateway");
  agent.Set("model", seen || record.agent.model.empty() ? record.usage.model : record.agent.model);
  agent.Set("modelSeen", seen);
  return agent;
}

Json StateIsolation(const report::IsolationRecord& isolation) {
  Json controls = Json::EmptyObject();
  for (const report::ControlRecord& control : isolation.controls) {
    if (controls.Find(control.name) != nullptr) continue;
    controls.Set(control.name, report::Render(control.state));
  }
  Json json;
  json.Set("tier", isolation.tier).Set("controls", std::move(controls));
  return json;
}

Json StateLimits(const std::vector<report::LimitRecord>& limits) {
  Json list = Json::EmptyArray();
  for (const report::LimitRecord& limit : limits) {
    Json one;
    one.Set("name", limit.name).Set("limit", Optional(limit.limit));
    one.Set("used", Optional(limit.used)).Set("unit", limit.unit).Set("reached", limit.fired);
    list.Push(std::move(one));
  }
  return list;
}

Json StateUsage(const report::UsageRecord& usage) {
  Json json;
  json.Set("inputTokens", usage.input_tokens).Set("outputTokens", usage.output_tokens);
  json.Set("cacheReadTokens", usage.cache_read_tokens);
  json.Set("cacheWriteTokens", usage.cache_write_tokens);
  json.Set("costUsd", Optional(usage.cost_usd)).Set("costSource", usage.cost_source);
  return json;
}

Json StateNetwork(const Events& events) {
  Json hosts = Json::EmptyArray();
  for (const auto& [server, use] : events.hosts) {
    Json host;
    host.Set("host", server.first).Set("port", server.second);
    host.Set("allowed", use.allowed).Set("refused", use.refused).Set("failed", use.failed);
    hosts.Push(std::move(host));
  }
  Json network;
  network.Set("hosts", std::move(hosts));
  network.Set("hostedTools",
              Json::FromStrings({events.hosted_tools.begin(), events.hosted_tools.end()}));
  return network;
}

Json StateCredentials(const report::RunRecord& record, const Events& events) {
  Json identities = Json::EmptyArray();
  for (const report::IdentityRecord& identity : record.identities) {
    Json one;
    one.Set("provider", identity.provider).Set("issuer", identity.issuer);
    one.Set("subject", identity.subject);
    identities.Push(std::move(one));
  }
  Json json;
  json.Set("names", Json::FromStrings(record.credentials));
  json.Set("refusedUses", events.refused_credentials).Set("identities", std::move(identities));
  return json;
}

Json StateChanges(const report::ChangesRecord& changes) {
  Json json;
  json.Set("files", changes.files).Set("addedLines", changes.added_lines);
  json.Set("removedLines", changes.removed_lines).Set("prefix", changes.prefix);
  json.Set("mergedCommit", changes.merged).Set("applied", changes.applied);
  json.Set("tree", changes.tree);
  return json;
}

Json StateChecks(const std::vector<report::CheckRecord>& checks) {
  Json list = Json::EmptyArray();
  for (const report::CheckRecord& check : checks) {
    Json one;
    one.Set("command", check.command).Set("outcome", report::Render(check.outcome));
    one.Set("status", check.status ? Json(*check.status) : Json());
    list.Push(std::move(one));
  }
  return list;
}

// Each rule's findings are counted: their messages quote what the agent wrote.
Json StateGates(const std::vector<report::Finding>& findings) {
  std::map<std::tuple<std::string, std::string, bool>, int64_t> counts;
  for (const report::Finding& finding : findings) {
    if (finding.source != report::FindingSource::kGate) continue;
    ++counts[{finding.rule, report::Render(finding.severity), finding.refuses}];
  }
  Json list = Json::EmptyArray();
  for (const auto& [key, count] : counts) {
    Json one;
    one.Set("rule", std::get<0>(key)).Set("severity", std::get<1>(key));
    one.Set("refuses", std::get<2>(key)).Set("count", count);
    list.Push(std::move(one));
  }
  return list;
}

Json StateRecords(const std::vector<RecordFile>& files, const Events& events) {
  Json list = Json::EmptyArray();
  for (const RecordFile& file : files) {
    Json one;
    one.Set("name", file.name).Set("bytes", file.bytes).Set("sha256", file.sha256);
    list.Push(std::move(one));
  }
  Json tree;
  tree.Set("count", static_cast<int64_t>(events.leaves.size()));
  tree.Set("root", codec::EncodeHex(sigstore::TreeRoot(events.leaves)));
  tree.Set("last", events.leaves.empty() ? "" : codec::EncodeHex(events.leaves.back()));
  tree.Set("head", events.head);
  Json json;
  json.Set("files", std::move(list)).Set("events", std::move(tree));
  return json;
}

// The names of the records that are not whole.
std::vector<std::string> MissingFrom(const report::RunRecord& record, const Events& events) {
  std::vector<std::string> missing;
  if (!record.changes.complete) missing.emplace_back("changes");
  if (record.denials_dropped > 0 || events.dropped > 0) missing.emplace_back("events");
  if (!record.usage.unpriced_models.empty()) missing.emplace_back("cost");
  return missing;
}

Json SubjectOf(std::string name, std::string sha256) {
  Json digests;
  digests.Set("sha256", std::move(sha256));
  Json subject;
  subject.Set("name", std::move(name)).Set("digest", std::move(digests));
  return subject;
}

}  // namespace

std::string PredicateType() { return std::string(kHomepage) + "/attestation/run/v0.1"; }

std::string ChainOf(const std::string& sha256) { return "sha256:" + sha256; }

std::string OwnDigest() {
  const std::string path = "/proc/self/exe";
  const Result<Fd> file = sys::Open(path, O_RDONLY);
  if (!file.ok()) return {};
  const Result<RecordFile> program = DigestFile(file.value(), path);
  return program.ok() ? program.value().sha256 : "";
}

Result<Json> DescribeRun(int directory, const std::string& runner_sha256) {
  const report::RunFile run = TRY(report::ReadRun(directory));
  const report::RunRecord& record = run.record;
  const std::vector<RecordFile> files = TRY(ListRecords(directory));
  const auto own = std::find_if(files.begin(), files.end(),
                                [](const RecordFile& file) { return file.name == "run.json"; });
  const Events events = TRY(ReadEvents(directory, ChainOf(own == files.end() ? "" : own->sha256)));
  const std::vector<std::string> missing = MissingFrom(record, events);
  Json runner;
  runner.Set("version", record.tool_version).Set("sha256", runner_sha256);
  runner.Set("kernel", record.kernel);
  Json predicate;
  predicate.Set("run", StateWhen(record)).Set("source", StateSource(record));
  predicate.Set("policy", StatePolicy(record, events)).Set("image", StateImage(record.image));
  predicate.Set("agent", StateAgent(record));
  predicate.Set("isolation", StateIsolation(record.isolation));
  predicate.Set("limits", StateLimits(record.limits));
  predicate.Set("usage", StateUsage(record.usage));
  predicate.Set("network", StateNetwork(events));
  predicate.Set("credentials", StateCredentials(record, events));
  predicate.Set("changes", StateChanges(record.changes));
  predicate.Set("checks", StateChecks(record.checks));
  predicate.Set("gates", StateGates(record.findings));
  predicate.Set("complete", missing.empty()).Set("missing", Json::FromStrings(missing));
  predicate.Set("runner", std::move(runner)).Set("records", StateRecords(files, events));
  Json subjects = Json::EmptyArray();
  for (const char* name : {"changes.patch", "run.json"}) {
    for (const RecordFile& file : files) {
      if (file.name == name && file.bytes > 0) subjects.Push(SubjectOf(name, file.sha256));
    }
  }
  if (!record.changes.tree.empty()) {
    // sigstore-python takes no digest of git's kinds, in-toto's "gitTree" among them.
    subjects.Push(SubjectOf("tree", codec::Sha256Hex(record.changes.tree)));
  }
  Json statement;
  statement.Set("_type", kStatementType).Set("subject", std::move(subjects));
  statement.Set("predicateType", PredicateType()).Set("predicate", std::move(predicate));
  return statement;
}

const Json& Statement::predicate() const { return *json.Find("predicate"); }

const Json* Statement::Find(std::string_view path) const {
  const Json* at = &predicate();
  while (at != nullptr && !path.empty()) {
    const size_t end = path.find('.');
    at = at->Find(path.substr(0, end));
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return at;
}

std::string Statement::TextAt(std::string_view path) const {
  const Json* value = Find(path);
  return value != nullptr && value->string() != nullptr ? *value->string() : "";
}

std::string Statement::DigestOf(std::string_view name) const {
  for (const Subject& subject : subjects) {
    if (subject.name == name && subject.algorithm == "sha256") return subject.digest;
  }
  return {};
}

Result<Statement> ParseStatement(std::string_view payload) {
  Statement statement;
  statement.json = TRY(codec::ParseJson(payload, {.bytes_max = kStatementBytesMax}));
  if (statement.json.StringAt("_type") != kStatementType) {
    return Error{Code::kInvalid, "not an in-toto statement of version 1"};
  }
  const std::string type = statement.json.StringAt("predicateType");
  if (type != PredicateType()) {
    return Error{Code::kInvalid, "the statement is not about a run: its type is '" + type + "'"};
  }
  const Json* predicate = statement.json.Find("predicate");
  const Json* subjects = statement.json.Find("subject");
  if (predicate == nullptr || predicate->object() == nullptr || subjects == nullptr ||
      subjects->array() == nullptr) {
    return Error{Code::kInvalid, "the statement has no predicate or no subjects"};
  }
  for (const Json& subject : *subjects->array()) {
    const Json* digests = subject.Find("digest");
    if (digests == nullptr || digests->object() == nullptr) {
      return Error{Code::kInvalid, "a subject has no digest"};
    }
    for (const auto& [algorithm, digest] : *digests->object()) {
      if (digest.string() == nullptr) return Error{Code::kInvalid, "a digest is not text"};
      statement.subjects.push_back({subject.StringAt("name"), algorithm, *digest.string()});
    }
  }
  return statement;
}

}  // namespace attest
