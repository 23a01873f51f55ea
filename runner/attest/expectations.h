// SPDX-License-Identifier: Apache-2.0
// What may be expected of a run, by what is stated of it: one table, for options, for a file of
// expectations and for the documentation. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/statement.h"
#include "base/result.h"

namespace attest {

struct Expectation {
  std::string_view name;   // The option without `--`; a file spells it with `_` for `-`.
  std::string_view value;  // The name of its value: "TIER"; empty for a switch.
  std::string_view doc;    // Sentences.
  bool repeatable = false;
  // Fails with kInvalid for a text that cannot be meant. May be null.
  Status (*check)(std::string_view text) = nullptr;
  // Returns why it is not met by any of `wanted`; empty if it is. What a statement does not say is
  // not met.
  std::string (*judge)(const Statement& statement,
                       const std::vector<std::string>& wanted) = nullptr;
};

std::span<const Expectation> Expectations();

// The texts by the name of their expectation; of a switch, "true".
using Wishes = std::map<std::string, std::vector<std::string>, std::less<>>;

struct Unmet {
  std::string name;
  std::string why;
};

// Judges a statement whose signature was verified. Of `outcome`, "success" is expected if `wishes`
// names no other; a run whose records are not whole is unmet unless it is said that it may be.
std::vector<Unmet> Judge(const Statement& statement, const Wishes& wishes);

// Reads a file of expectations: a mapping whose keys are `keys`, of signers, and the names in
// Expectations(). Fails with kInvalid and "file:line:col: error: what".
Result<Wishes> ParseWishes(const std::string& file, std::string_view text,
                           const std::vector<std::string_view>& keys);

}  // namespace attest
