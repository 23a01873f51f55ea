// SPDX-License-Identifier: Apache-2.0
// The text that summary.md and report.html have in common. Everything here is plain text:
// quantities are ours, but names and reasons are not, so each rendering still neutralises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/record.h"

namespace report {

std::string HumanCount(int64_t count);                     // "12,345"
std::string HumanBytes(double bytes);                      // "1.5 MiB"
std::string HumanDuration(double seconds);                 // "42 s", "3 min 5 s"
std::string HumanCost(double dollars);                     // "$0.0224", "$3.20"
std::string Plural(int64_t count, std::string_view noun);  // "1 file", "2 files"
std::string HumanDate(int64_t ms_since_1970);              // "2026-11-21 20:35 UTC"

// Describes changes: "3 files changed (+12 −4)", "no changes".
std::string DescribeChanges(const ChangesRecord& changes);
// Describes a limit: "310 MiB of 4 GiB"; "42 s, no limit"; "4 GiB" if the use is unknown.
std::string DescribeLimit(const LimitRecord& limit);
// Describes an attempt: "POST api.example.com/v1/x", "connect to example.com:22", "POST
// api.example.com/graphql: mutation {createIssue}". From outside: not neutral.
std::string DescribeAttempt(const advise::Denial& denial);
// Describes a policy: "policy.yml at main (1234567)".
std::string DescribePolicy(const PolicyRecord& policy);
// Describes the use: "2 turns, 1 tool call, 3,600 tokens in (900 cached), 120 out"; empty if
// nothing was counted.
std::string DescribeUsage(const UsageRecord& usage);
// Describes the cost: "$0.0224"; "$0.0224 (the agent says $0.0600)"; "cost unknown:
// no price for x, $0.0100 for the rest"; empty if nothing was asked. Names are not neutral.
std::string DescribeCost(const UsageRecord& usage);

// Returns the gateway's reason, with the place of the deny rule that refused it, if one did. Not
// neutral.
std::string DescribeRefusal(const DeniedRequest& denied);

// Returns the lines an `endpoints:` list needs for the refused requests that read, each once.
std::vector<std::string> AllowLines(const std::vector<DeniedRequest>& denials);
// Returns the rules that endpoints need for what writes or is judged by operation: the place of
// each as a comment ("# api.example.com:443/graphql"), then its line. Each once, at most
// `rows_max`. Not neutral.
std::vector<std::string> AllowRules(const std::vector<DeniedRequest>& denials, size_t rows_max);
// Returns the command that applies the patch in `directory`, to a person whose run it was: "git
// apply agentic-ci-report/changes.patch". Empty in CI, unless Succeeded(), and where
// there is nothing to apply or it is applied.
std::string ApplyCommand(const RunRecord& record, const std::string& directory);
// Returns how many requests were refused, with those that the list has no room for.
int64_t CountAttempts(const RunRecord& record);
// True for "https://" or "http://" and nothing that could end an attribute or a Markdown link.
bool IsPlainUrl(std::string_view url);
// Returns how long the run took, from its record.
double DurationSeconds(const RunRecord& record);

// The pages of a repository on its forge. Every address is empty where `url` must not be
// linked (IsPlainUrl), or the page is not known.
struct WebPages {
  std::string url = {};    // "https://github.com/owner/name".
  std::string forge = {};  // EventRecord::forge.

  std::string Commit(std::string_view sha) const;
  std::string Proposal(int64_t number) const;
  // Returns "#7", or "!7" on GitLab: how people name a proposal.
  std::string Reference(int64_t number) const;
  // `path` as bytes; `line` 0 for the file.
  std::string File(std::string_view sha, std::string_view path, int line) const;
};
// Returns the pages of the event's repository, whose run's address begins with theirs.
WebPages PagesOf(const EventRecord& event);

}  // namespace report
