// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace eval {

// Fails with kRefused and `hint` if a symbolic link leads to `directory`, where results are, or to
// its cells.
Status RefuseLinkedResults(const std::string& directory, const std::string& hint);

// Returns the canonical path of a directory of results. Fails with kRefused and `hint` as
// RefuseLinkedResults() does, and if git tracks cells there; with `hint` and the code of
// change::Repository's error if there are cells, and a repository around them cannot be asked; with
// kNotFound if there is no such directory.
Result<std::string> FindResults(const std::string& directory, const std::string& hint);

// Makes the directory that results are written into, and returns its canonical path. Fails as
// FindResults() does, and with kIo if it cannot be made.
Result<std::string> OpenResults(const std::string& directory, const std::string& hint);

}  // namespace eval
