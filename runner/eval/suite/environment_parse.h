// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/suite/suite.h"

namespace eval {

// Parses the `environment` of a suite. Fails with kInvalid and "file:line:col: error: what".
Result<Environment> ParseEnvironment(const std::string& file, const codec::YamlNode& node,
                                     std::vector<Warning>* warnings);

}  // namespace eval
