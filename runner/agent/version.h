// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace agent {

// Returns whether `version` is one that an agent was tried with, of the form "2.1.197": `tried`
// itself, or a later one of its major version. True as well if either is not of that form.
bool IsTried(std::string_view version, std::string_view tried);

// Returns the version of the npm package that `program` belongs to, from the nearest package.json
// above it that has one; empty if there is none, or it cannot be read. `program` is a canonical
// path on the host, and nothing is run.
std::string PackageVersion(const std::string& program);

}  // namespace agent
