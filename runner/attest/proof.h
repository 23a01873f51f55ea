// SPDX-License-Identifier: Apache-2.0
// Verifies what is stated of a run: its signature, and that a report, a patch or a commit is the
// one that it is about.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/expectations.h"
#include "attest/statement.h"
#include "base/result.h"
#include "change/repository.h"
#include "sigstore/verify.h"

namespace attest {

inline constexpr size_t kProofBytesMax = size_t{32} << 20;  // The largest bundle that is read.

// A statement that its signer made.
struct Proof {
  Statement statement;
  sigstore::Verified verified;
  std::string sha256;  // Of the bundle's bytes: how commits name it.
};

// Reads the statement in `bundle`, JSON of a Sigstore bundle, and verifies nothing. Fails as
// VerifyProof() does.
Result<Statement> ReadUnverified(std::string_view bundle);

// Verifies the signature of `bundle`, JSON of a Sigstore bundle that holds a statement about a run,
// and where the signer's certificate names a run of CI, that it is the stated one. Fails with
// kRefused and "signature: why" for a signature that does not count, with kInvalid for anything
// that is not a statement about a run.
Result<Proof> VerifyProof(std::string_view bundle, const sigstore::VerifyOptions& options,
                          const sigstore::TrustedRoot& root);

// Returns what is proven, for people: a line each for who signed it and what it is about.
std::string Describe(const Proof& proof);

// Compares the statement with the report that `directory` is open on, read as hostile input:
// every record that is stated must be there as it was, and no other, and everything that is stated
// of the run must follow from them. Returns what differs. Fails as DescribeRun() does.
Result<std::vector<Unmet>> CompareReport(const Statement& statement, int directory);

// Returns why `patch` is not the stated one; nullopt if it is.
std::optional<Unmet> ComparePatch(const Statement& statement, std::string_view patch);

// Returns why `commit` is not what the run made: its tree is the stated one; or, where a `patch`
// that is the stated one is given, what that patch makes of the commit's first parent.
Result<std::optional<Unmet>> CompareCommit(const Statement& statement,
                                           const change::Repository::CommitFacts& commit,
                                           const change::Repository& repository,
                                           const std::string* patch);

// One record of a run's events with its place among them, for those who may not see the others.
struct ShownRecord {
  std::string line;
  int64_t index = 0;
  int64_t count = 0;
  std::vector<std::string> path;  // Hexadecimal: the audit path of RFC 6962.
};
// Takes the record `index`, from 0, from the report. Fails with kNotFound if there is none.
Result<ShownRecord> ShowRecord(int directory, int64_t index);
std::string RenderShown(const ShownRecord& shown);
Result<ShownRecord> ParseShown(std::string_view json);
// Returns why the record is not among the stated events; nullopt if it is.
std::optional<Unmet> CompareRecord(const Statement& statement, const ShownRecord& shown);

}  // namespace attest
