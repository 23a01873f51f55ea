// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "policy/model/after_untrusted.h"

namespace policy {

// Reads a value of `after_untrusted`: `none`, or a mapping with `closes`, and if wanted `stays` and
// `trusts`. `file` is named in errors. Fails with kInvalid, and a hint, for anything else.
Result<AfterUntrusted> ParseAfterUntrusted(const std::string& file, const codec::YamlNode& node);

}  // namespace policy
