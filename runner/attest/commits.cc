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

// Judges the statement that a commit names.
Status JudgeOne(const change::Repository& repository, const change::Repository::CommitFacts& commit,
                const FetchedProofs& proofs, const sigstore::VerifyOptions& options,
                const sigstore::TrustedRoot& root, const JudgeProof& judge, JudgedCommit* judged) {
  if (judged->statement_sha256.empty()) {
    judged->unmet.push_back({"statement", "the commit names no statement about its run"});
    return Ok();
  }
  const std::optional<FetchedProofs::Found> found = TRY(proofs.Read(judged->statement_sha256));
  if (!found) {
    judged->unmet.push_back(
        {"statement", "the statement " + judged->statement_sha256 + " was not found"});
    return Ok();
  }
  Result<Proof> proof = VerifyProof(found->bundle, options, root);
  if (!proof.ok()) {
    judged->unmet.push_back({"statement", proof.error().what});
    return Ok();
  }
  judged->proof = std::move(proof).value();
  const Statement& statement = judged->proof->statement;
  // Copies of one statement may come with different patches: the stated one counts.
  const std::string* patch = nullptr;
  for (const std::string& one : found->patches) {
    if (!ComparePatch(statement, one)) patch = &one;
  }
  const std::optional<Unmet> other = TRY(CompareCommit(statement, commit, repository, patch));
  if (other) judged->unmet.push_back(*other);
  for (Unmet& one : judge(statement)) judged->unmet.push_back(std::move(one));
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
                                               const FetchedProofs& proofs,
                                               const sigstore::VerifyOptions& options,
                                               const sigstore::TrustedRoot& root, bool every,
                                               const JudgeProof& judge) {
  std::vector<JudgedCommit> judged;
  for (const auto& commit : TRY(repository.CommitsSince(base, head, kCommitsMax))) {
    JudgedCommit one;
    one.id = commit.id;
    const std::optional<std::string> named = FindTrailer(commit.message, kStatementTrailer);
    one.statement_sha256 = named.value_or("");
    one.agents = named || FindTrailer(commit.message, kCommitTrailer);
    if (one.agents || every) {
      TRY(JudgeOne(repository, commit, proofs, options, root, judge, &one));
    }
    judged.push_back(std::move(one));
  }
  return judged;
}

}  // namespace attest
