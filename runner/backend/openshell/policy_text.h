// SPDX-License-Identifier: Apache-2.0
// Policies as OpenShell reads them, and what it makes of one that this program does not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/openshell/generation.h"
#include "base/result.h"
#include "codec/data/position.h"
#include "policy/load/parse.h"
#include "policy/model/policy.h"

namespace openshell {

// A credential that OpenShell's proxy puts into requests to these hosts.
struct CredentialBinding {
  std::vector<std::string> hosts;  // The hosts, as in a policy; lower case.
  std::string provider;
};

// Renders `policy` as a policy file of OpenShell: JSON, which is YAML. What the short form gives
// the agent, every program of the sandbox may do: nothing but the agent and what it starts runs
// there. An endpoint with `access` and no protocol is written as `rest`: OpenShell would enforce
// nothing. Paths of the usual programs are added where the policy lists none at all. Fails with
// kUnsupported if the policy cannot say where a credential goes (no endpoint has one of its hosts,
// or one host would need two providers), or has a key that OpenShell does not (EndpointKey).
Result<std::string> RenderPolicy(const policy::Policy& policy,
                                 const std::vector<CredentialBinding>& credentials);

// A place where the policy that OpenShell gets is written differently, or means something else.
struct PolicyDifference {
  codec::Position at;
  std::string what;
};
// Returns the differences from what that generation does, in the order of the file. Those of 0.1
// are from its documentation.
std::vector<PolicyDifference> DifferencesOf(const policy::ParsedPolicy& parsed,
                                            Generation generation);

}  // namespace openshell
