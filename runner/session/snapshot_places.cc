// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot_places.h"

#include <set>

namespace session {
namespace {

using Kind = sandbox::MountStep::Kind;

bool Holds(const std::string& directory, const std::string& path) {
  return path == directory || path.starts_with(directory + "/");
}

}  // namespace

std::vector<SnapshotPlace> FindSnapshotPlaces(const sandbox::SandboxPlan& plan) {
  std::set<std::string> sealed;
  for (const sandbox::MountStep& step : plan.steps()) {
    if (step.kind == Kind::kReadOnly || step.kind == Kind::kEmpty) sealed.insert(step.target);
  }
  std::vector<SnapshotPlace> places;
  for (const sandbox::MountStep& step : plan.steps()) {
    if (sealed.contains(step.target) || Holds("/dev", step.target)) continue;
    if (step.kind == Kind::kWorkspace) {
      places.insert(places.begin(), {step.target, step.scratch + "/upper", true});
    } else if (step.kind == Kind::kOverlay) {
      places.push_back({step.target, step.scratch + "/upper"});
    } else if (step.kind == Kind::kScratch) {
      places.push_back({step.target, step.scratch});
    } else if (step.kind == Kind::kWritable) {
      places.push_back({step.target, "image/upper" + step.target});
    }
  }
  return places;
}

std::optional<PlacedPath> FindPlaceOf(const std::vector<SnapshotPlace>& places,
                                      const std::string& checkout, const std::string& path) {
  std::optional<PlacedPath> found;
  size_t longest = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string& target = places[i].checkout ? checkout : places[i].target;
    if (!Holds(target, path) || target.size() < longest) continue;
    longest = target.size();
    found = PlacedPath{i, path.size() > target.size() ? path.substr(target.size() + 1) : ""};
  }
  return found;
}

}  // namespace session
