// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cli {

// Returns the repository's file `path` (from its top) as it lies on disk: here, or in a directory
// above up to the repository's top, as a relative path; empty if there is none.
std::string FindRepositoryFile(const std::string& path);

}  // namespace cli
