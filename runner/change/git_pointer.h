// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace change {

// Reads a file of a git directory that an earlier step of the job may have tampered with: neither a
// link is followed nor a pipe waited for. Fails with kInvalid if it is not a regular file or too
// large.
Result<std::string> ReadGitText(const std::string& path, size_t bytes_max);

// Returns the path that the first line of `file` names after `prefix`, canonical; a relative one
// starts at `base`. Returns nullopt if the file cannot be read or the path does not exist.
std::optional<std::string> ReadGitPointer(const std::string& file, std::string_view prefix,
                                          const std::string& base);

// Returns the git directory of the working tree at `top`: its `.git`, or what that file names;
// nullopt if there is none.
std::optional<std::string> GitDirectoryOf(const std::string& top);

}  // namespace change
