// SPDX-License-Identifier: Apache-2.0
// Finds the files that coding agents take for instructions by themselves (CLAUDE.md, AGENTS.md,
// .mcp.json, .cursor/ and others): the agent gets those of the trusted commit, whatever a pull
// request makes of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "run/trusted/trusted_file.h"
#include "sandbox/plan.h"

namespace run {

// Returns the instruction files in `checkout` that are not as they are at `ref`, with the text that
// they have there, or as gone. Looked at are every tracked file that differs between `ref` and
// HEAD, tracked links, and whatever lies at the checkout's top and in its `.github`, tracked or
// not. A symbolic link at `ref` stands for the text it leads to there; one to a directory is
// withheld. Empty without a repository, for `worktree`, and before the first commit. Fails with
// kRefused where a file of `ref` cannot be put back, since a directory stands in its place or a
// link in its directory's, and with kInvalid beyond bounds.
Result<std::vector<sandbox::WorkspaceFile>> FindBaseInstructions(
    const change::Repository* repository, const std::string& checkout, const TrustedRef& ref);

}  // namespace run
