// SPDX-License-Identifier: Apache-2.0
#include "run/policy_reload.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "policy/live_update.h"

namespace run {

void AddNetwork(const std::vector<policy::NetworkPolicy>& added, policy::Policy* policy) {
  policy->network.insert(policy->network.end(), added.begin(), added.end());
  std::sort(
      policy->network.begin(), policy->network.end(),
      [](const policy::NetworkPolicy& a, const policy::NetworkPolicy& b) { return a.key < b.key; });
}

PolicyReload::PolicyReload(Rules rules, Read read, policy::Policy at_start,
                           std::vector<policy::NetworkPolicy> added)
    : rules_(rules),
      read_(std::move(read)),
      in_force_(std::move(at_start)),
      added_(std::move(added)) {}

Result<LoadedPolicy> PolicyReload::ReadNext() const {
  LoadedPolicy next = TRY(read_());
  AddNetwork(added_, &next.parsed.policy);
  TRY(policy::CheckLiveUpdate(in_force_, next.parsed.policy));
  return next;
}

Status PolicyReload::Perform(gateway::Gateway& gateway) {
  if (!rules_.has_file) {
    logging::Warn("the policy is not read again", {{"why", "the run was given no --policy FILE"}});
    return Ok();
  }
  Result<LoadedPolicy> next = ReadNext();
  if (!next.ok()) {
    const std::string then = rules_.keeps_valid ? "the last one stays" : "nothing passes";
    logging::Warn("the policy cannot change", {{"why", next.error().what}, {"then", then}});
    return gateway.RejectUpdate(next.error().what, !rules_.keeps_valid);
  }
  LoadedPolicy loaded = std::move(next).value();
  TRY(gateway.Update(loaded.parsed.policy, "sha256:" + loaded.record.sha256));
  in_force_ = std::move(loaded.parsed.policy);
  logging::Info("the policy has changed",
                {{"file", loaded.file}, {"sha256", loaded.record.sha256}});
  return Ok();
}

}  // namespace run
