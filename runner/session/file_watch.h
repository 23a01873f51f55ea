// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "session/place.h"
#include "session/protocol.h"

namespace session {

struct ChangedFiles {
  std::vector<FileChange> changes;
  bool complete = true;
};

// Watches what changes in a sandbox's checkout while it goes on, over a connection of its own.
// Commands go on during a look, so that it may see a file half written. Several watches do not
// meet.
class FileWatch {
 public:
  // Fails with kNotFound if no sandbox has that name.
  static Result<FileWatch> Open(const Place& place, const std::string& name);

  // Returns what has changed since the look before. The first look: since the sandbox began, or in
  // tier `landlock`, since now. After an error, the connection is of no use any more.
  Result<ChangedFiles> Look(Deadline deadline);

 private:
  explicit FileWatch(Fd connection) : connection_(std::move(connection)) {}

  Fd connection_;
};

}  // namespace session
