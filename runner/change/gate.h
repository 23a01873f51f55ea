// SPDX-License-Identifier: Apache-2.0
// The verdict on the agent's changes. Pure: no file is read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "change/capture.h"
#include "change/protected_links.h"
#include "change/protected_path.h"
#include "change/rules/embedded_repository.h"
#include "codec/data/secret_mask.h"

namespace change {

enum class Severity { kNote, kWarning, kError };

// One reason to look at, or to refuse, a change set.
struct GateFinding {
  std::string gate;  // "secrets", "protected-paths" or "size".
  Severity severity = Severity::kError;
  std::string path;  // The path as in FileChange; empty if the finding is about the whole set.
  int64_t line = 0;  // 1-based in the new file; 0 if it has no line.
  // A text for people; never holds the secret it is about, only its kind, fixed prefix and length.
  std::string message;
};

struct GateLimits {
  // The bounds on a run's changes, `gates.files` and `gates.bytes` of the configuration. A codemod
  // over a large repository passes; an agent that rewrites everything, or adds its dependencies,
  // does not.
  int64_t files_max = 20'000;
  int64_t patch_bytes_max = 32 << 20;
  int64_t findings_max = 200;  // Further ones are counted in one last finding.
  // The path from the repository's top to the checkout (Repository::prefix): a path may be
  // protected there.
  std::string prefix;
  std::vector<ProtectedLink> links;  // The links of the tree before the agent changed it.
  std::string links_unknown;         // Why `links` may lack some, which refuses any change, or "".
  // The rules of the repository's configuration, from the trusted commit.
  std::vector<PathRule> paths;
  // Paths, from the top, by which the run's own policy is read, if `--policy` names a file of the
  // repository: with the change, the agent's text would be the policy when it is read again.
  std::vector<std::string> policy;
  // Paths, from the top, that the change set makes what they are in the base branch's commit that
  // was merged: whether they may be so, and say so, was judged there. What is not the base's (links
  // that leave the checkout, the run's own secrets, the bounds) is judged as elsewhere.
  std::set<std::string> merged;
  // The names in RepositoryCandidates(WrittenPaths()) before the agent changed the tree.
  DirectoryNames before;
};

struct Verdict {
  bool accepted = true;         // No finding is of kError.
  bool reveals_secret = false;  // It contains a known secret: the patch must not be shown.
  std::vector<GateFinding> findings;
};

// Returns the paths that a change set writes, from the repository's top: not those that it only
// deletes.
std::vector<std::string> WrittenPaths(const std::vector<FileChange>& files,
                                      const std::string& prefix);

// Judges a change set, which may come from a report and be hostile: `files` and `patch` are both
// looked at, and a section of one that the other does not have is itself refused. O(patch).
//   secrets: a secret of the run itself (`known`, may be null), or what has the form of one, in
//   added lines, in names and in binary data (of a binary file changed in part
//     only what was inserted, which is noted).
//   protected-paths: paths that steer CI, review, hooks or agents (protected_path.h), under the old
//     name as well as the new, and what links at such paths lead to; the run's policy; names that
//     leave the checkout or enter `.git`; symbolic links that may point outside it; directories
//     that become a repository, or one's own files (rules/embedded_repository.h).
//   size: the limits, and a set that is not complete.
Verdict JudgeChanges(const ChangeSet& changes, const GateLimits& limits,
                     const codec::SecretMask* known = nullptr);

// Returns `changes` without the files that JudgeChanges() refuses, and without conflicts: each is
// in `left_out`, with the reason. What is left is accepted; nothing is left if the whole is
// refused, by the gate size for instance. The set is then complete.
ChangeSet LeaveOutRefused(ChangeSet changes, GateLimits limits, const codec::SecretMask* known);

// Judges `lines` that are to be put into the file `path`, which starts from limits.prefix, by the
// gates protected-paths and secrets: a suggestion is applied without a patch.
Verdict JudgeLines(const std::string& path, std::string_view lines, const GateLimits& limits);

}  // namespace change
