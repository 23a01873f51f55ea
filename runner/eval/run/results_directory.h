// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace eval {

// Fails with kRefused and `hint` if a symbolic link leads to `directory`, where results are, or to
// its cells.
Status RefuseLinkedResults(const std::string& directory, const std::string& hint);

// Makes the directory that results are written into, and returns its canonical path. Fails with
// kRefused and `hint` as RefuseLinkedResults() does, and if git tracks cells there; as
// change::Repository::Open() does, except that it may be outside of any repository; with kIo if it
// cannot be made.
Result<std::string> OpenResults(const std::string& directory, const std::string& hint);

}  // namespace eval
