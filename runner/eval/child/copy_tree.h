// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace eval {

// Copies the regular files of a tree into an empty directory, and adds the paths of what else is
// there to `left_out`: the target of a link, or what another program would write into a pipe, is
// not evidence of a cell. Fails with kIo.
Status CopyTree(const std::string& from, const std::string& to, std::vector<std::string>* left_out);

}  // namespace eval
