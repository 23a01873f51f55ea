// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace change {

// Returns `rules` of the .gitignore in `directory` ("" is the top, otherwise with a `/` at the end)
// as those of one at the top.
std::string RulesAtTop(const std::string& rules, const std::string& directory);

}  // namespace change
