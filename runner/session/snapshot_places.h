// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/plan.h"

namespace session {

// What the agent may write to, and what stays of it in a snapshot.
struct SnapshotPlace {
  std::string target;  // As the agent sees it; absolute.
  std::string layer;   // The directory of its changes, in that of the writable layers.
  bool checkout = false;
};

// Of a sandbox of tier namespaces: the checkout first. What is in /dev is not kept.
std::vector<SnapshotPlace> FindSnapshotPlaces(const sandbox::SandboxPlan& plan);

// Which of `places` holds `path` (absolute), and the rest of it; the checkout of the snapshot was
// at `checkout`. Nothing: none does.
struct PlacedPath {
  size_t place = 0;
  std::string rest;  // Relative; empty: the place itself.
};
std::optional<PlacedPath> FindPlaceOf(const std::vector<SnapshotPlace>& places,
                                      const std::string& checkout, const std::string& path);

}  // namespace session
