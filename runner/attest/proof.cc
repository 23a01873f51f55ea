// SPDX-License-Identifier: Apache-2.0
#include "attest/proof.h"

#include <algorithm>
#include <map>
#include <utility>

#include "attest/records.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "report/event_lines.h"
#include "report/read.h"
#include "sigstore/bundle.h"
#include "sigstore/fulcio_identity.h"
#include "sigstore/trust/merkle.h"

namespace attest {
namespace {

using codec::Json;

constexpr int kInvocationClaim = 21;        // Fulcio's "run invocation URI".
constexpr int kSourceRepositoryClaim = 12;  // "Source repository URI".
constexpr size_t kDifferencesMax = 20;

Error BadSignature(const std::string& why) {
  return Error{Code::kRefused, "signature: " + why, {}};
}

// Returns the path of a URL without its first slash: "acme/site".
std::string PathOf(const std::string& url) {
  const size_t host = url.find("://");
  const size_t slash = host == std::string::npos ? host : url.find('/', host + 3);
  return slash == std::string::npos ? "" : url.substr(slash + 1);
}

// A certificate of CI names the run that it was issued to: a statement of another run may not be
// signed with it. GitHub's address of a run has the attempt behind it.
Status CheckClaims(const sigstore::FulcioIdentity& holder, const Statement& statement) {
  const auto claim = [&](int arc) {
    const auto found = holder.claims.find(arc);
    return found == holder.claims.end() ? std::string() : found->second;
  };
  const std::string invocation = claim(kInvocationClaim);
  const std::string stated = statement.TextAt("run.invocation");
  // GitLab's certificates name the job, and its events the pipeline: of both, the project counts.
  const size_t pipelines = stated.find("/-/pipelines/");
  const bool same = pipelines != std::string::npos
                        ? invocation.starts_with(stated.substr(0, pipelines) + "/-/jobs/")
                        : invocation == stated || invocation.starts_with(stated + "/attempts/");
  if (!invocation.empty() && (stated.empty() || !same)) {
    return Error{Code::kRefused, "invocation: signed in " + invocation +
                                     ", stated: " + (stated.empty() ? "none" : stated)};
  }
  const std::string source = claim(kSourceRepositoryClaim);
  const std::string repository = statement.TextAt("source.repository");
  if (!source.empty() && (repository.empty() || PathOf(source) != repository)) {
    return Error{Code::kRefused, "repository: signed in " + source + ", stated: " + repository};
  }
  return Ok();
}

// The digests of the stated records by name.
std::map<std::string, std::string> StatedRecords(const Statement& statement) {
  std::map<std::string, std::string> stated;
  const Json* files = statement.Find("records.files");
  if (files == nullptr || files->array() == nullptr) return stated;
  for (const Json& file : *files->array()) stated[file.StringAt("name")] = file.StringAt("sha256");
  return stated;
}

// Appends the places in which two values differ, as paths of names.
void Differ(const std::string& path, const Json* stated, const Json* found,
            std::vector<std::string>* places) {
  if (places->size() >= kDifferencesMax) return;
  if (stated != nullptr && found != nullptr && stated->object() != nullptr &&
      found->object() != nullptr) {
    for (const auto& [name, value] : *stated->object()) {
      Differ(path + "." + name, &value, found->Find(name), places);
    }
    for (const auto& [name, value] : *found->object()) {
      if (stated->Find(name) == nullptr) Differ(path + "." + name, nullptr, &value, places);
    }
    return;
  }
  const bool same = stated != nullptr && found != nullptr &&
                    codec::RenderJsonLine(*stated) == codec::RenderJsonLine(*found);
  if (!same) places->push_back(path.substr(1));
}

Result<Statement> StatementIn(const sigstore::Bundle& bundle) {
  if (!bundle.content.payload) return BadSignature("the bundle has no statement");
  return ParseStatement(*bundle.content.payload);
}

}  // namespace

Result<Statement> ReadUnverified(std::string_view text) {
  sigstore::Checked<sigstore::Bundle> bundle = sigstore::ParseBundle(text);
  if (!bundle.ok()) return BadSignature(sigstore::Render(bundle.error()));
  return StatementIn(bundle.value());
}

Result<Proof> VerifyProof(std::string_view text, const sigstore::VerifyOptions& options,
                          const sigstore::TrustedRoot& root) {
  sigstore::Checked<sigstore::Bundle> bundle = sigstore::ParseBundle(text);
  if (!bundle.ok()) return BadSignature(sigstore::Render(bundle.error()));
  Proof proof;
  proof.statement = TRY(StatementIn(bundle.value()));
  std::string sha256;
  for (const Subject& subject : proof.statement.subjects) {
    if (subject.algorithm == "sha256") sha256 = subject.digest;
  }
  const sigstore::Verdict verdict = sigstore::VerifyBundle(text, sha256, options, &root);
  if (const auto* rejection = std::get_if<sigstore::Rejection>(&verdict)) {
    return BadSignature(sigstore::Render(*rejection));
  }
  proof.verified = std::get<sigstore::Verified>(verdict);
  if (bundle.value().leaf != nullptr) {
    sigstore::Checked<sigstore::FulcioIdentity> holder =
        sigstore::ReadIdentity(bundle.value().leaf.get());
    if (!holder.ok()) return BadSignature(sigstore::Render(holder.error()));
    TRY(CheckClaims(holder.value(), proof.statement));
  }
  proof.sha256 = codec::Sha256Hex(text);
  return proof;
}

std::string Describe(const Proof& proof) {
  const Statement& statement = proof.statement;
  std::string text = "signed by: " + proof.verified.signer + "\n";
  if (!proof.verified.issuer.empty()) text += "issuer: " + proof.verified.issuer + "\n";
  for (const auto& [name, path] :
       {std::pair("run", "run.invocation"), std::pair("finished", "run.finishedAt"),
        std::pair("outcome", "run.outcome.kind"), std::pair("repository", "source.repository"),
        std::pair("head", "source.headCommit"), std::pair("agent", "agent.name"),
        std::pair("model", "agent.model"), std::pair("tier", "isolation.tier"),
        std::pair("policy", "policy.sha256")}) {
    const std::string value = statement.TextAt(path);
    if (!value.empty()) text += std::string(name) + ": " + value + "\n";
  }
  return text;
}

Result<std::vector<Unmet>> CompareReport(const Statement& statement, int directory) {
  std::vector<Unmet> unmet;
  std::map<std::string, std::string> stated = StatedRecords(statement);
  // A signed report does not have this file, which could be taken for what was signed.
  if (sys::ExistsAt(directory, report::kUnsignedFile)) {
    unmet.push_back(
        {"records", std::string(report::kUnsignedFile) + " is there and is not signed"});
  }
  for (const RecordFile& file : TRY(ListRecords(directory))) {
    const auto found = stated.find(file.name);
    if (found == stated.end()) {
      // A report is hostile input, and so are the names in it.
      unmet.push_back({"records", codec::NeutralLine(file.name) + " is there and is not stated"});
    } else if (found->second != file.sha256) {
      unmet.push_back({"records", file.name + " is not the one that is stated"});
    }
    if (found != stated.end()) stated.erase(found);
    if (unmet.size() >= kDifferencesMax) return unmet;
  }
  for (const auto& [name, digest] : stated) {
    unmet.push_back({"records", name + " is stated and is not there"});
    if (unmet.size() >= kDifferencesMax) return unmet;
  }
  if (!unmet.empty()) return unmet;
  const Json found = TRY(DescribeRun(directory, statement.TextAt("runner.sha256")));
  std::vector<std::string> places;
  Differ("", statement.json.Find("predicate"), found.Find("predicate"), &places);
  Differ(".subject", statement.json.Find("subject"), found.Find("subject"), &places);
  for (const std::string& place : places) {
    unmet.push_back({"report", place + " does not follow from the report"});
  }
  return unmet;
}

std::optional<Unmet> ComparePatch(const Statement& statement, std::string_view patch) {
  const std::string stated = statement.DigestOf("changes.patch");
  const std::string found = codec::Sha256Hex(patch);
  if (!stated.empty() && stated == found) return std::nullopt;
  return Unmet{"patch",
               stated.empty() ? "the run changed nothing" : "the statement is about another patch"};
}

Result<std::optional<Unmet>> CompareCommit(const Statement& statement,
                                           const change::Repository::CommitFacts& commit,
                                           const change::Repository& repository,
                                           const std::string* patch) {
  const std::string tree = statement.TextAt("changes.tree");
  const std::string merged = statement.TextAt("changes.mergedCommit");
  const std::string on = statement.TextAt("source.checkoutCommit");
  const std::vector<std::string>& parents = commit.parents;
  // A commit with other parents would drop, or hide, what is between.
  const bool plain =
      parents.size() == 1 || (parents.size() == 2 && !merged.empty() && parents.back() == merged);
  if (!plain) {
    return std::optional<Unmet>(Unmet{"commit", "it has other parents than the run's commit"});
  }
  if (!tree.empty() && tree == commit.tree && parents.front() == on) return std::optional<Unmet>();
  if (patch != nullptr) {
    if (std::optional<Unmet> other = ComparePatch(statement, *patch)) return other;
    const Result<std::string> made =
        repository.TreeWith(parents.front(), statement.TextAt("changes.prefix"), *patch);
    if (made.ok() && made.value() == commit.tree) return std::optional<Unmet>();
  }
  return std::optional<Unmet>(Unmet{
      "commit", "its tree is " + commit.tree + " on " + parents.front() + ", and the run made " +
                    (tree.empty() ? "none" : tree) + " of " + (on.empty() ? "no commit" : on)});
}

Result<ShownRecord> ShowRecord(int directory, int64_t index) {
  ShownRecord shown;
  shown.index = index;
  bool found = false;
  std::vector<std::string> leaves;
  const auto take = [&](std::string_view line, bool whole) {
    if (static_cast<int64_t>(leaves.size()) == index && whole) {
      shown.line = line;
      found = true;
    }
    leaves.push_back(EventLeaf(line));
  };
  TRY(report::ForEachEventLine("/proc/self/fd/" + std::to_string(directory), take));
  if (!found) {
    return Error{Code::kNotFound, "the report has " + std::to_string(leaves.size()) +
                                      " records, counted from 0, and none at " +
                                      std::to_string(index)};
  }
  shown.count = static_cast<int64_t>(leaves.size());
  for (const std::string& hash : sigstore::AuditPath(leaves, static_cast<size_t>(index))) {
    shown.path.push_back(codec::EncodeHex(hash));
  }
  return shown;
}

std::string RenderShown(const ShownRecord& shown) {
  Json json;
  json.Set("index", shown.index).Set("count", shown.count);
  json.Set("path", Json::FromStrings(shown.path)).Set("record", shown.line);
  return codec::RenderJson(json);
}

Result<ShownRecord> ParseShown(std::string_view text) {
  const Json json = TRY(codec::ParseJson(text));
  const Json* path = json.Find("path");
  const Json* line = json.Find("record");
  if (path == nullptr || path->array() == nullptr || line == nullptr || line->string() == nullptr) {
    return Error{Code::kInvalid, "not a record with its path", "agentic-ci verify-run --show 0"};
  }
  ShownRecord shown{*line->string(), json.IntegerAt("index", -1), json.IntegerAt("count"), {}};
  for (const Json& hash : *path->array()) {
    if (hash.string() == nullptr) return Error{Code::kInvalid, "a hash is not text"};
    shown.path.push_back(*hash.string());
  }
  return shown;
}

std::optional<Unmet> CompareRecord(const Statement& statement, const ShownRecord& shown) {
  const Json* events = statement.Find("records.events");
  const std::string root = statement.TextAt("records.events.root");
  std::vector<std::string> path;
  for (const std::string& hash : shown.path) {
    path.push_back(codec::DecodeHex(hash).value_or(""));
  }
  const bool counted = events != nullptr && shown.index >= 0 && shown.count > 0 &&
                       events->IntegerAt("count", -1) == shown.count;
  if (counted &&
      sigstore::ProvesInclusion(EventLeaf(shown.line), static_cast<uint64_t>(shown.index),
                                static_cast<uint64_t>(shown.count), path,
                                codec::DecodeHex(root).value_or(""))) {
    return std::nullopt;
  }
  return Unmet{"record", "it is not among the stated events"};
}

}  // namespace attest
