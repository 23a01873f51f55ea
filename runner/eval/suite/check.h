// SPDX-License-Identifier: Apache-2.0
// The checks that a suite makes at the end of a cell: a predicate over evidence, or a combination
// of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/data/position.h"
#include "codec/data/yaml.h"
#include "codec/glob/glob.h"
#include "codec/regex/regex.h"
#include "eval/suite/address_range.h"
#include "eval/suite/channel.h"

namespace eval {

enum class CheckKind {
  kAllOf,
  kAnyOf,
  kNot,
  // Midojo's, with its meaning.
  kOutputContains,
  kOutputContainsAll,
  kOutputContainsAny,
  kFieldEquals,
  kFieldContains,
  kListAnyMatch,
  kListCount,
  kFieldUnchanged,
  kCommandMatches,
  kFileExists,  // Created by the agent.
  kFileDeleted,
  kFileContains,  // Created, and with this in it.
  kProcessRan,
  kNetworkCallTo,
  kNetworkCallBlockedTo,
  kFindingRaised,
  // Ours: exact where those above compare substrings.
  kFileChanged,
  kHostReached,
  kHostBlocked,
  kHttpRequest,
  kProgramRan,
  kEgressContains,
  kToolCalled,
  kHostedTool,
  kVerifier,  // The suite's own: a program.
};

// A program of the suite that judges the evidence of a cell.
struct Verifier {
  std::string name;
  std::vector<std::string> command;  // Words that begin with "./" are its files.
  // These, as the suite has them: paths as in `command`, and contents.
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<Channel> channels;  // What it looks at; never empty.
  int64_t seconds = 0;            // How long it may take.
};
using Verifiers = std::vector<Verifier>;

struct Check {
  CheckKind kind = CheckKind::kAllOf;
  // The key as in the file; a string of the table, so never dangling. Of a verifier, whose name is
  // in `texts`, "verifier".
  std::string_view key;
  codec::Position at;
  // The texts that are looked for; for kFileContains the path first.
  std::vector<std::string> texts;
  std::string field;  // A dotted path into the state.
  codec::Json value;  // The value for kFieldEquals, and for a verifier.
  int64_t count = 0;  // kListCount; of a host its port, 0: any.
  // The facts for kListAnyMatch and kHttpRequest; for kEgressContains the host's pattern, if it
  // names one.
  std::vector<std::pair<std::string, std::string>> match;
  codec::Regex regex;  // The pattern for kCommandMatches; see has_regex.
  bool has_regex = false;
  codec::Glob glob;  // kFileChanged; of a host, where it is not a range.
  std::optional<AddressRange> range;
  std::optional<Verifier> verifier;
  std::vector<Check> parts;  // The parts of the three combinations; never empty.
};

struct Warning {
  codec::Position at;
  std::string what;
};

// Parses a check, a mapping with one key. Fails with kInvalid and "file:line:col: error: what".
// `state` is the tools' state, which field paths refer to; null in a suite without one, where no
// check may name a field. Broad predicates are added to `warnings`. The keys of `verifiers` are
// checks, too.
Result<Check> ParseCheck(const std::string& file, const codec::YamlNode& node,
                         const codec::Json* state, std::vector<Warning>* warnings,
                         const Verifiers& verifiers = {});

// Parses the `verifiers` of a suite in `directory`. Fails with kInvalid and "file:line:col: error:
// what", also for a file that the suite does not have.
Result<Verifiers> ParseVerifiers(const std::string& file, const codec::YamlNode& node,
                                 const std::string& directory);

// Adds the texts of every egress_contains in `check`.
void CollectSentTexts(const Check& check, std::vector<std::string>* texts);

// Returns the value at a dotted path; null if it leads nowhere.
const codec::Json* FieldAt(const codec::Json& state, std::string_view path);

// Returns every key of a check, for documentation and hints.
std::vector<std::string_view> CheckKeys();

}  // namespace eval
