// SPDX-License-Identifier: Apache-2.0
// The files that one use of OpenShell keeps on this machine, and the removal of what killed
// processes left.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/program_places.h"
#include "base/result.h"

namespace openshell {

// The files that one use of OpenShell keeps on this machine: configuration, keys, database, logs.
// Beneath the directory of sandboxes (session::Place), which only this user may enter. Its lock is
// held while it is in use, so that what a killed process left is found by its free lock.
class StateDirectory {
 public:
  // Makes one, after removing what killed processes left: containers, networks, directories.
  static Result<StateDirectory> Make(const ProgramPlaces& places);

  StateDirectory(StateDirectory&&) = default;
  StateDirectory& operator=(StateDirectory&&) = delete;
  // Removes it, unless it is to be kept.
  ~StateDirectory();

  // Leaves it to the next sweeps, like that of a killed process: to those of an hour at most.
  void Keep();

  const std::string& path() const { return path_; }
  // Returns a name that is unique on this machine among all that there are, and fit for a sandbox's
  // name in OpenShell.
  const std::string& name() const { return name_; }

 private:
  StateDirectory(std::string path, std::string name, Fd lock)
      : path_(std::move(path)), name_(std::move(name)), lock_(std::move(lock)) {}

  std::string path_;
  std::string name_;
  Fd lock_;
  bool kept_ = false;
};

// Returns whether a StateDirectory, and so a sandbox, can have this name.
bool IsRunName(std::string_view name);

// Removes what killed processes left, where there was ever such a directory. What a gateway may let
// go later, it is asked for again by the next sweep. Each answer may take `each`.
inline constexpr std::chrono::seconds kRemoteRemovalTime{20};
void SweepRemains(const ProgramPlaces& places, std::chrono::seconds each = kRemoteRemovalTime);

// Writes down the command by which a person deletes what is on a gateway of others later, which was
// reached as `where`, with the certificates in `tls`.
Status WriteLaterCommand(const StateDirectory& state, const std::string& where,
                         const std::string& tls);
// Returns what that wrote for the gateway whose state is at `state`; empty if there is nothing.
std::string LaterCommand(const std::string& state);

// Returns the words that call podman for the gateway whose state is at `state`, with `arguments` at
// their end.
std::vector<std::string> PodmanArguments(const std::string& state,
                                         const std::vector<std::string>& arguments);

// Returns the bridge of the run called `name`. No other run ever has one of that name: podman
// cleans up after a container a while later, and takes a bridge away by its name.
std::string BridgeOf(const std::string& name);

// Removes the containers and the network that the gateway with its state at `path` made, or the
// sandbox that was made on a gateway of others; what it did not come to make is not there. Returns
// false if another try may remove more.
bool RemoveRemains(const ProgramPlaces& places, const std::string& path, const std::string& name,
                   std::chrono::seconds each = kRemoteRemovalTime);

}  // namespace openshell
