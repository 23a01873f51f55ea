// SPDX-License-Identifier: Apache-2.0
// The `endpoints:` form of the policy file, and the defaults it adds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "policy/load/fields.h"
#include "policy/load/parse.h"
#include "policy/model/policy.h"

namespace policy {

enum class Defaults { kAgenticCi, kMinimal, kNone };

// Returns the network policies that `defaults` stands for in this run; no file says them, so they
// have no position.
std::vector<NetworkPolicy> DefaultNetworkPolicies(Defaults defaults, const ParseContext& context);

// Parses "host:port[:access[:protocol[:enforcement[:options]]]]". Fails with kInvalid at the
// segment that is wrong, counted from `at`, where the text starts.
Result<Endpoint> ParseEndpointText(Reader* reader, codec::Position at, std::string_view text);

// Parses a file with `endpoints:`, or an empty one. Network policies are sorted by key.
Result<std::vector<NetworkPolicy>> ParseShortForm(Reader* reader, const codec::YamlNode& root,
                                                  const ParseContext& context);

}  // namespace policy
