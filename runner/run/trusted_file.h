// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"
#include "change/repository.h"

namespace run {

// Which commit a run believes: the pull request has no say in it.
struct TrustedRef {
  std::string ref;     // "worktree": the working tree itself, when somebody asked for it.
  bool named = false;  // On the command line: it must exist.
};

struct TrustedFile {
  std::optional<std::string> text;  // Nothing: there is no such file.
  std::string commit;               // Empty for the working tree.
};

// The repository's file `path` at `ref`. `repository` may be null (a directory without git): then
// there is none. Fails with kNotFound for a named ref that does not exist, and with kInvalid for a
// file over `bytes_max`.
Result<TrustedFile> ReadTrustedFile(const change::Repository* repository,
                                    const std::string& checkout, const TrustedRef& ref,
                                    const std::string& path, size_t bytes_max);

}  // namespace run
