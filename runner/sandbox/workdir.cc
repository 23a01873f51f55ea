// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workdir.h"

#include <algorithm>

#include "policy/model/own_places.h"
#include "sandbox/mask.h"

namespace sandbox {
Status CheckRequired(const SandboxRequest& request, const std::string& path, PathKind kind) {
  bool required = request.policy.landlock == policy::LandlockMode::kHardRequirement;
  if (!required || IsPrivate(path) || kind != PathKind::kMissing) return Ok();
  return Error{
      Code::kInvalid,
      path + " of the policy does not exist " + (request.image ? "in the image" : "on this host"),
      "remove it, or set landlock.compatibility: best_effort"};
}

Result<WorkdirAccess> DecideWorkdir(const policy::FilesystemPolicy& filesystem,
                                    const std::vector<LandlockRule>& rules,
                                    const std::string& checkout) {
  if (filesystem.include_workdir) return WorkdirAccess::kWritable;
  bool readable = false;
  bool private_place = IsPrivate(checkout) || Beneath(checkout, "/var/tmp");
  for (const LandlockRule& rule : rules) {
    // The sandbox's own /tmp says nothing about a checkout on the host's.
    bool own = rule.path == "/var/tmp" ||
               std::find(policy::kOwnPlaces.begin(), policy::kOwnPlaces.end(), rule.path) !=
                   policy::kOwnPlaces.end();
    if (own || !Beneath(checkout, rule.path)) continue;
    if (rule.writable) return WorkdirAccess::kWritable;
    readable = true;
  }
  std::vector<std::string> inside = filesystem.read_write;
  if (!readable) {
    inside.insert(inside.end(), filesystem.read_only.begin(), filesystem.read_only.end());
  }
  for (const std::string& path : inside) {
    if (!Beneath(path, checkout)) continue;
    if (!private_place) return WorkdirAccess::kByLandlock;
    return Error{Code::kInvalid,
                 path + " of the policy is in the checkout, which include_workdir: false hides",
                 "include_workdir: true"};
  }
  return readable ? WorkdirAccess::kReadOnly : WorkdirAccess::kEmpty;
}

}  // namespace sandbox
