// SPDX-License-Identifier: Apache-2.0
// Finds branches, tags, stashes and merges that the agent made in git, which the patch does not
// contain.
#pragma once

#include <string>
#include <vector>

#include "report/record.h"
#include "run/shown/git_files.h"

namespace run {

// One branch, tag or stash.
struct LostRef {
  std::string kind;  // "branch", "tag", "stash"
  std::string name;  // "topic", "v1", "stash@{0}": bytes
  std::string text;  // The first line of its message; empty if that is not found.
};

// The same git directory, without and with what the agent did there.
struct GitSides {
  int host;          // Borrowed.
  int inside;        // A layer over it, or a copy of it. Its content is hostile. Borrowed.
  std::string head;  // The text of HEAD, if the layer does not have it.
  std::string head_path = "HEAD";
};

// Returns what the agent made or moved beside its working tree, from which the patch is made: tags,
// stashes, and every branch but the one that is checked out and those moved to its commit. Only
// files are read (no reftable), bounded and without following a link.
std::vector<LostRef> FindLostRefs(const GitSides& sides);

// Returns the commits that the agent may have merged: those that it made or went to, with all their
// parents, and what a merge was begun with. What they are is the agent's word. At most 1000.
std::vector<std::string> FindMergedCommits(const GitSides& sides);

// Returns one note for each, and for a great number of them one more that says how many.
std::vector<report::Finding> DescribeLostRefs(const std::vector<LostRef>& refs);

struct AgentGit {
  std::vector<LostRef> lost;
  std::vector<std::string> merged;  // FindMergedCommits().
};
// Returns both for the agent's repository: `upper` is the checkout's layer or its copy, `layers`
// the directory of all writable layers (-1 if there is none). `git` is as before the run.
AgentGit ReadAgentGit(const std::string& checkout, const GitFiles& git, int upper, int layers);

}  // namespace run
