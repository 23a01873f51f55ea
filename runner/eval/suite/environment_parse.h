// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/suite/suite.h"

namespace eval {

// A file of fake tools for a suite that has none.
struct ToolsFile {
  std::string name;  // As in messages.
  codec::YamlNode root;
};

// Parses the `environment` of a suite, whose tools are in `tools`, unless that is null. Fails with
// kInvalid and "file:line:col: error: what".
Result<Environment> ParseEnvironment(const std::string& file, const codec::YamlNode& node,
                                     const ToolsFile* tools, std::vector<Warning>* warnings);

}  // namespace eval
