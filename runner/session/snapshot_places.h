// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/plan.h"

namespace session {

// A place that the agent may write to, and whose changes stay in a snapshot.
struct SnapshotPlace {
  std::string target;  // The absolute path that the agent sees.
  std::string layer;   // The directory of its changes, in that of the writable layers.
  bool checkout = false;
};

// Returns the places of a sandbox of tier namespaces, the checkout first. Files in /dev are not
// kept.
std::vector<SnapshotPlace> FindSnapshotPlaces(const sandbox::SandboxPlan& plan);

// The one of some places that holds a path, and the rest of that path. `path` is absolute; the
// checkout of the snapshot was at `checkout`. FindPlaceOf returns nullopt if no place holds it.
struct PlacedPath {
  size_t place = 0;
  std::string rest;  // Relative; if empty, the place itself.
};
std::optional<PlacedPath> FindPlaceOf(const std::vector<SnapshotPlace>& places,
                                      const std::string& checkout, const std::string& path);

}  // namespace session
