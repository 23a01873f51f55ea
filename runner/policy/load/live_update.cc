// SPDX-License-Identifier: Apache-2.0
#include "policy/load/live_update.h"

#include <algorithm>
#include <string_view>

namespace policy {
namespace {

Error Unacceptable(std::string what) {
  return Error{Code::kInvalid, what + " on a live sandbox", "start another run to change it"};
}

Status CheckPaths(std::string_view list, const std::vector<std::string>& now,
                  const std::vector<std::string>& next) {
  for (const std::string& path : now) {
    if (std::find(next.begin(), next.end(), path) != next.end()) continue;
    return Unacceptable("filesystem " + std::string(list) + " path '" + path +
                        "' cannot be removed");
  }
  return Ok();
}

bool CapturesTcp(const Policy& policy) {
  for (const NetworkPolicy& network : policy.network) {
    for (const Endpoint& endpoint : network.endpoints) {
      if (endpoint.protocol == Protocol::kTcp) return true;
    }
  }
  return false;
}

}  // namespace

Status CheckLiveUpdate(const Policy& now, const Policy& next) {
  if (now.filesystem.include_workdir != next.filesystem.include_workdir) {
    return Unacceptable("filesystem include_workdir cannot be changed");
  }
  TRY(CheckPaths("read_only", now.filesystem.read_only, next.filesystem.read_only));
  TRY(CheckPaths("read_write", now.filesystem.read_write, next.filesystem.read_write));
  if (now.landlock != next.landlock) return Unacceptable("landlock policy cannot be changed");
  bool same_process = now.process.run_as_user == next.process.run_as_user &&
                      now.process.run_as_group == next.process.run_as_group;
  if (!same_process) return Unacceptable("process policy cannot be changed");
  if (!CapturesTcp(now) && CapturesTcp(next)) {
    return Unacceptable("the first 'protocol: tcp' endpoint cannot be added");
  }
  return Ok();
}

}  // namespace policy
