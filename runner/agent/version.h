// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace agent {

// Returns whether `version` is one that an agent was tried with, of the form "2.1.197": `tried`
// itself, or a later one of its major version. True as well if either is not of that form.
bool IsTried(std::string_view version, std::string_view tried);

// The version of the package of npm's that `program` belongs to: of the nearest package.json above
// that has one. `program` is a canonical path on the host, and nothing is run. Empty: there is
// none, or it cannot be read.
std::string PackageVersion(const std::string& program);

}  // namespace agent
