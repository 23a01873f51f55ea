// SPDX-License-Identifier: Apache-2.0
// This user's own snapshots: what there are, and the room that they take.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace session {

struct ListedSnapshot {
  std::string digest;  // The digest of its manifest.
  std::string tag;     // Empty if it has none.
  int64_t bytes = 0;   // What its files take, also those that another snapshot shares.
  time_t taken = 0;
};
// Lists the snapshots of DefaultSnapshots(), the oldest first.
Result<std::vector<ListedSnapshot>> ListSnapshots();

struct SnapshotRoom {
  int64_t bytes_freed = 0;
  int64_t bytes_left = 0;
};
// Removes the snapshot of that tag, or every one of that digest; a file that another one needs
// stays. Fails with kNotFound if there is none.
Result<SnapshotRoom> DeleteSnapshot(const std::string& tag_or_digest);
// Removes what no snapshot of the list needs: those whose tag went to another one.
Result<SnapshotRoom> PruneSnapshots();

}  // namespace session
