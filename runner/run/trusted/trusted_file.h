// SPDX-License-Identifier: Apache-2.0
// Finds the commit that a run believes, and reads files at it: policy, configuration, prompts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"

namespace run {

// The name for the working tree itself, if that is requested.
inline constexpr char kWorktree[] = "worktree";

// The commit that a run believes: the pull request has no say in it.
struct TrustedRef {
  std::string ref;
  bool assumed = false;  // HEAD, since this is not CI and no other ref was given.
  // The command to type if the checkout lacks it; if empty, as for any ref.
  std::string fetch = {};
  // The commits that the event's pull request proposes. A given ref must not lead to one of them,
  // nor to a commit that has one for a parent, as the forge's own merge has.
  std::vector<std::string> refused = {};
};

// Returns the error for a given ref that is the pull request's own branch or commit.
Error RefuseProposed(const std::string& ref);

struct TrustedFile {
  std::optional<std::string> text;  // nullopt if there is no such file.
  std::string commit;               // Empty for the working tree.
  // True if the ref was assumed, and the working tree has another text, which was not read.
  bool worktree_differs = false;
};

// Reads the file `path`, from the repository's top, at `ref`. `repository` may be null: `checkout`
// is then a directory without git, which has no file but those of the working tree. A file that
// should be readable and is not is an error, never a missing file. Fails with kNotFound for a ref
// or an object that does not exist, with kInvalid for a file over `bytes_max`.
Result<TrustedFile> ReadTrustedFile(const change::Repository* repository,
                                    const std::string& checkout, const TrustedRef& ref,
                                    const std::string& path, size_t bytes_max);

// Checks, for a file `path` (.agentic-ci/NAME.yml) that is missing, whether another one was
// probably meant, so that no misspelt file is silently replaced by what is built in; fails with
// kInvalid then. Such files are NAME.yaml, name.YML, one of `other_names` likewise, .Agentic-CI/,
// .agentic-ci.yml: only letters and digits count, in either case. Otherwise fails as
// ReadTrustedFile() does.
Status CheckSpelling(const change::Repository* repository, const std::string& checkout,
                     const TrustedRef& ref, const std::string& path,
                     const std::vector<std::string>& other_names);

}  // namespace run
