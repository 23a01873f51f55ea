// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/suite/suite.h"

namespace eval {

// Makes the directory `path`, which holds `files`, a git repository with `commits` on the branch
// main, the oldest first; the same ones always have the same ids. Files that no commit takes stay
// untracked. Fails with kIo if git cannot write there.
Status MakeHistory(const std::string& path, const std::vector<SeedFile>& files,
                   const std::vector<SeedCommit>& commits);

}  // namespace eval
