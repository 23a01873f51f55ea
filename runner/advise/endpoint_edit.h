// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "advise/operation_rule.h"
#include "advise/patched_text.h"
#include "codec/data/yaml.h"
#include "policy/model/policy.h"

namespace advise {

// Writes `addition` into the endpoint of the policy file `text` that `endpoint` was read from;
// `root` is the file's tree. A preset in `access` becomes the rules it stands for. The first line
// that changes has `comment` (lines, "# ...") above it, unless it has that already. Returns false
// and changes nothing if there are no rules to add to, or if they are written in a way that is not
// known here.
bool EditEndpoint(const codec::YamlNode& root, const policy::Endpoint& endpoint,
                  const EndpointAddition& addition, const std::vector<std::string>& comment,
                  PatchedText* text);

}  // namespace advise
