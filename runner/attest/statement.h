// SPDX-License-Identifier: Apache-2.0
// What is stated of a run: an in-toto statement made of nothing but its report. The form:
// docs/reference/attestation.md; rules: in-toto/attestation, spec/v1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"

namespace attest {

// The type of the predicate, as base/version.h has the project's address.
std::string PredicateType();

// Makes the statement about the report that `directory` is open on, which is read as hostile input:
// its subjects are run.json, changes.patch and the resulting tree, as far as there are these, each
// by a SHA-256: of the tree, that of git's name for it. `runner_sha256` is the digest of the
// program that signs, or empty. Fails as report::ReadReport() and ListRecords() do.
Result<codec::Json> DescribeRun(int directory, const std::string& runner_sha256);

// Names the chain of a run's records (record/integrity.h) after run.json, whose SHA-256 this is, in
// hexadecimal: the statement can be found by the same digest.
std::string ChainOf(const std::string& sha256);

// Returns the SHA-256 of this program's own file, in hexadecimal; empty if it cannot be read.
std::string OwnDigest();

// A subject of a statement.
struct Subject {
  std::string name;
  std::string algorithm;  // "sha256".
  std::string digest;     // Hexadecimal.
};

// A statement about a run, well formed and still not to be believed.
struct Statement {
  codec::Json json;
  std::vector<Subject> subjects;

  const codec::Json& predicate() const;
  // Returns the value at a path such as "isolation.tier" of the predicate; null if there is none.
  const codec::Json* Find(std::string_view path) const;
  std::string TextAt(std::string_view path) const;
  // Returns the digest of the subject of that name; empty if there is none.
  std::string DigestOf(std::string_view name) const;
};

// Parses the payload of an envelope. Fails with kInvalid for anything that is not a
// statement about a run.
Result<Statement> ParseStatement(std::string_view payload);

}  // namespace attest
