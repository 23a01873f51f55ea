// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are created before they are needed. A pool is a process that keeps a number of
// them ready, all made by one request. Each is given to one client, and another takes its place.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "session/keeper.h"
#include "session/place.h"

namespace session {

inline constexpr int64_t kPoolMax = 64;
// Facts::backend of a pool, which has no shell of its own.
inline constexpr char kPoolBackend[] = "pool";

// Starts a pool of `size` sandboxes (1 to kPoolMax) named `request.name` and a number, with reports
// in `request.run.report_dir` and that number. Waits until all are ready; if one cannot be, none
// are left. The pool ends after `ttl_s`; one that waits for half of that is replaced.
Result<Facts> CreatePool(const CreateRequest& request, int64_t size);
// Takes a sandbox out of the pool: it is an ordinary one from then on. If none is ready, waits
// until one is. Fails with kUsage if `pool` names a sandbox.
Result<Facts> TakeFromPool(const Place& place, const std::string& pool);
// Ends the pool and the sandboxes that were not taken.
Status DeletePool(const Place& place, const std::string& pool);

}  // namespace session
