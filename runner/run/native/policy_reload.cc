// SPDX-License-Identifier: Apache-2.0
#include "run/native/policy_reload.h"

#include <utility>

#include "base/log.h"
#include "policy/load/live_update.h"

namespace run {

PolicyReload::PolicyReload(Rules rules, Read read, const LoadedPolicy& at_start,
                           std::vector<policy::NetworkPolicy> added)
    : rules_(rules),
      read_(std::move(read)),
      in_force_(at_start.parsed.policy),
      sha256_(at_start.record.sha256),
      added_(std::move(added)) {}

Result<LoadedPolicy> PolicyReload::ReadNext(const std::optional<Text>& given) const {
  LoadedPolicy next = TRY(read_(given));
  AddNetwork(added_, &next.parsed.policy);
  TRY(policy::CheckLiveUpdate(in_force_, next.parsed.policy));
  return next;
}

Status PolicyReload::Perform(gateway::Gateway& gateway) {
  if (!rules_.has_file) {
    logging::Warn("the policy is not reloaded",
                  {{"why", "the run was started without --policy FILE"}});
    return Ok();
  }
  Result<LoadedPolicy> next = ReadNext(std::nullopt);
  if (!next.ok()) {
    if (!rules_.keeps_valid) sha256_.clear();
    const std::string then =
        rules_.keeps_valid ? "the previous policy stays in force" : "all traffic is blocked";
    logging::Warn("the new policy is invalid or not accepted",
                  {{"why", next.error().what}, {"then", then}});
    return gateway.RejectUpdate(next.error().what, !rules_.keeps_valid);
  }
  return Replace(gateway, std::move(next).value());
}

Result<LoadedPolicy> PolicyReload::Check(gateway::Gateway& gateway, const Text& given) const {
  if (!rules_.has_file) return PolicyDoesNotChange();
  Result<LoadedPolicy> next = ReadNext(given);
  if (!next.ok()) TRY(gateway.RejectUpdate(next.error().what, false));
  return next;
}

Status PolicyReload::Replace(gateway::Gateway& gateway, LoadedPolicy loaded) {
  if (loaded.record.sha256 == sha256_) {
    logging::Info("the policy is unchanged", {{"file", loaded.file}, {"sha256", sha256_}});
    return Ok();
  }
  TRY(gateway.Update(loaded.parsed.policy, "sha256:" + loaded.record.sha256));
  in_force_ = std::move(loaded.parsed.policy);
  sha256_ = loaded.record.sha256;
  logging::Info("the policy has changed", {{"file", loaded.file}, {"sha256", sha256_}});
  return Ok();
}

}  // namespace run
