// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "policy/model/hosted_tools.h"

namespace policy {

// Parses the value of `hosted_tools`: `none`, or a list of kinds, each alone or with `domains`.
// Fails with kInvalid and "file:line:col: error: what".
Result<std::vector<HostedAllowance>> ParseHostedTools(const std::string& file,
                                                      const codec::YamlNode& node);

}  // namespace policy
