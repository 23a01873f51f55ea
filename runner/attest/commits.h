// SPDX-License-Identifier: Apache-2.0
// The commits of a pull request that an agent made, and what is stated of the run of each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attest/proof.h"
#include "base/result.h"
#include "change/repository.h"

namespace attest {

// Statements that were fetched, with the patch of each where that was fetched with it.
class FetchedProofs {
 public:
  // Finds those in `directory`, at any depth, by the name that a report has for them
  // (report::kStatementFile). Other files, links and what cannot be read are passed over: anyone
  // may have put them there. Fails with kInvalid beyond 200,000 files, or 1 GiB of statements.
  static Result<FetchedProofs> FindIn(const std::string& directory);

  struct Found {
    std::string bundle;
    std::vector<std::string> patches;  // One for each copy of the statement that was found.
  };
  // Returns the statement with this SHA-256 (hexadecimal); nullopt if no copy was fetched.
  Result<std::optional<Found>> Read(const std::string& sha256) const;

 private:
  std::map<std::string, std::vector<std::string>> paths_;  // By digest: report directories.
};

struct JudgedCommit {
  std::string id;
  bool agents = false;           // It says that agentic-ci made it.
  std::string statement_sha256;  // From its trailer; empty if it names no statement.
  std::optional<Proof> proof;    // If one was found, and its signature counts.
  std::vector<Unmet> unmet;      // Empty for a commit that may be merged.
};

// Judges a statement about a run whose commit it is.
using JudgeProof = std::function<std::vector<Unmet>(const Statement& statement)>;

// Finds the bundles that a forge keeps about a tree, by git's name for it.
using FindStored = std::function<Result<std::vector<std::string>>(const std::string& tree)>;

// The statements that commits are looked up in, and the trust that these are verified with.
struct Evidence {
  FetchedProofs fetched;
  FindStored stored;  // For a commit whose statement was not fetched; may be empty.
  const sigstore::VerifyOptions& options;
  const sigstore::TrustedRoot& root;
};

// Judges the commits that `head` has and `base` does not. One that says that agentic-ci made it
// needs a statement that meets what is expected, and has to be what that run made. Others pass,
// unless `every` commit needs one. Fails as Repository::CommitsSince() and FindStored do.
Result<std::vector<JudgedCommit>> JudgeCommits(const change::Repository& repository,
                                               const std::string& base, const std::string& head,
                                               const Evidence& evidence, bool every,
                                               const JudgeProof& judge);

}  // namespace attest
