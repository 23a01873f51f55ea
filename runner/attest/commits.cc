// SPDX-License-Identifier: Apache-2.0
#include "attest/commits.h"

#include <fcntl.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "attest/trailer.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "report/read.h"

namespace attest {
namespace {

constexpr size_t kCommitsMax = 1000;
constexpr size_t kFetchedFilesMax = 200'000;
constexpr size_t kFetchedBytesMax = size_t{1} << 30;
constexpr size_t kPatchBytesMax = size_t{64} << 20;

// Judges one statement that may be about the commit's run.
Status JudgeFound(const change::Repository& repository,
                  const change::Repository::CommitFacts& commit, const Evidence& evidence,
                  const FetchedProofs::Found& found, const JudgeProof& judge,
                  JudgedCommit* judged) {
  Result<Proof> proof = VerifyProof(found.bundle, evidence.options, evidence.root);
  if (!proof.ok()) {
    judged->unmet.push_back({"statement", proof.error().what});
    return Ok();
  }
  judged->proof = std::move(proof).value();
  const Statement& statement = judged->proof->statement;
  // Copies of one statement may come with different patches: the stated one counts.
  const std::string* patch = nullptr;
  for (const std::string& one : found.patches) {
    if (!ComparePatch(statement, one)) patch = &one;
  }
  const std::optional<Unmet> other = TRY(CompareCommit(statement, commit, repository, patch));
  if (other) judged->unmet.push_back(*other);
  for (Unmet& one : judge(statement)) judged->unmet.push_back(std::move(one));
  return Ok();
}

// Judges the statement that a commit names; or those that are kept about its tree, of which one has
// to do: a forge writes a bundle in its own way, so that a digest of its bytes finds none.
Status JudgeOne(const change::Repository& repository, const change::Repository::CommitFacts& commit,
                const Evidence& evidence, const JudgeProof& judge, JudgedCommit* judged) {
  const std::string& named = judged->statement_sha256;
  std::vector<FetchedProofs::Found> found;
  if (!named.empty()) {
    std::optional<FetchedProofs::Found> fetched = TRY(evidence.fetched.Read(named));
    if (fetched) found.push_back(*std::move(fetched));
  }
  if (found.empty() && evidence.stored) {
    for (std::string& bundle : TRY(evidence.stored(commit.tree))) {
      found.push_back({std::move(bundle), {}});
    }
  }
  if (found.empty()) {
    const std::string why = named.empty() ? "the commit names no statement about its run"
                                          : "the statement " + named + " was not found";
    judged->unmet.push_back({"statement", why});
  }
  for (const FetchedProofs::Found& one : found) {
    judged->unmet.clear();
    judged->proof.reset();
    TRY(JudgeFound(repository, commit, evidence, one, judge, judged));
    if (judged->unmet.empty()) break;
  }
  return Ok();
}

}  // namespace

Result<FetchedProofs> FetchedProofs::FindIn(const std::string& directory) {
  FetchedProofs proofs;
  std::error_code failed;
  size_t files = 0;
  size_t bytes = 0;
  auto entry = std::filesystem::recursive_directory_iterator(
      directory, std::filesystem::directory_options::skip_permission_denied, failed);
  for (; !failed && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(failed)) {
    if (++files > kFetchedFilesMax || bytes > kFetchedBytesMax) {
      return Error{Code::kInvalid, directory + " has too many files, or too large ones"};
    }
    if (entry->path().filename() != report::kStatementFile) continue;
    const std::string place = entry->path().parent_path().string();
    const Result<std::string> bundle =
        sys::ReadBeneath(place, report::kStatementFile, kProofBytesMax);
    if (!bundle.ok()) continue;
    bytes += bundle.value().size();
    proofs.paths_[codec::Sha256Hex(bundle.value())].push_back(place);
  }
  if (failed) return Error{Code::kNotFound, directory + ": " + failed.message()};
  return proofs;
}

Result<std::optional<FetchedProofs::Found>> FetchedProofs::Read(const std::string& sha256) const {
  const auto places = paths_.find(sha256);
  if (places == paths_.end()) return std::optional<Found>();
  Found found;
  found.bundle =
      TRY(sys::ReadBeneath(places->second.front(), report::kStatementFile, kProofBytesMax));
  for (const std::string& place : places->second) {
    Result<std::string> patch = sys::ReadBeneath(place, "changes.patch", kPatchBytesMax);
    if (patch.ok()) found.patches.push_back(std::move(patch).value());
  }
  return std::optional(std::move(found));
}

Result<std::vector<JudgedCommit>> JudgeCommits(const change::Repository& repository,
                                               const std::string& base, const std::string& head,
                                               const Evidence& evidence, bool every,
                                               const JudgeProof& judge) {
  std::vector<JudgedCommit> judged;
  for (const auto& commit : TRY(repository.CommitsSince(base, head, kCommitsMax))) {
    JudgedCommit one;
    one.id = commit.id;
    const std::optional<std::string> named = FindTrailer(commit.message, kStatementTrailer);
    one.statement_sha256 = named.value_or("");
    one.agents = named || FindTrailer(commit.message, kCommitTrailer);
    if (one.agents || every) {
      TRY(JudgeOne(repository, commit, evidence, judge, &one));
    }
    judged.push_back(std::move(one));
  }
  return judged;
}

}  // namespace attest
