// SPDX-License-Identifier: Apache-2.0
// The policy file, in either of its two forms, from bytes to a `Policy`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/position.h"
#include "policy/model/policy.h"

namespace codec {
struct YamlNode;
}

namespace policy {

inline constexpr size_t kPolicyBytesMax = 262144;  // OpenShell's bound.

// A host of an agent's model.
struct ModelHost {
  std::string host;  // Canonical, or a pattern.
  uint16_t port = 443;
  std::string path = {};  // Selector; empty for every path.
};
// The model's hosts for an agent; empty for an unknown one.
using ModelHosts = std::function<std::vector<ModelHost>(const std::string& agent_name)>;

// The facts about the run that the `endpoints:` form needs: which default endpoints `defaults:`
// means and whose connections they are for.
struct ParseContext {
  std::string file;                       // The file's name, as shown in messages.
  std::string agent_name = "command";     // The agent that `model_hosts` is asked about.
  ModelHosts model_hosts = {};            // If null, `defaults:` opens no model.
  std::string forge_host = "github.com";  // The forge that hosts the repository.
  // What `hosted_tools` is where the policy does not say.
  std::vector<HostedAllowance> hosted_tools = {};
  AfterUntrusted after_untrusted = {};  // Likewise.
};

// Something legal that its author should know: shown by `policy check`, never an error.
struct Warning {
  codec::Position at;
  std::string what;
};

struct ParsedPolicy {
  Policy policy;
  std::vector<Warning> warnings;
  bool short_form = false;  // An `endpoints:` file.
  std::string file;         // The file's name, as in ParseContext.
};

// Fails with kInvalid and "file:line:col: error: what"; the hint names the nearest valid name.
// At most kPolicyBytesMax bytes.
// `errors`, unless null, gets every error that was found, in no particular order; the result has
// the first.
Result<ParsedPolicy> ParsePolicy(std::string_view yaml, const ParseContext& context,
                                 std::vector<Error>* errors = nullptr);
// Does the same for a tree that was read already: a policy inside another file.
Result<ParsedPolicy> ParsePolicyTree(const codec::YamlNode& root, const ParseContext& context,
                                     std::vector<Error>* errors = nullptr);

// Returns the policy of a repository without a policy file: `defaults: minimal`.
Policy DefaultPolicy(const ParseContext& context);

}  // namespace policy
