// SPDX-License-Identifier: Apache-2.0
#include "session/file_watch.h"

#include "base/wire.h"
#include "session/answer.h"

namespace session {

Result<FileWatch> FileWatch::Open(const Place& place, const std::string& name) {
  return FileWatch(TRY(place.Connect(name)));
}

Result<ChangedFiles> FileWatch::Look(Deadline deadline) {
  TRY(Send(connection_, wire::Write(MessageKind::kTouched)));
  std::string message = TRY(Receive(connection_, deadline));
  MessageKind kind{};
  ChangedFiles changed;
  if (!wire::Read(message, kind, changed.changes, changed.complete) ||
      kind != MessageKind::kChanges) {
    return Malformed();
  }
  return changed;
}

}  // namespace session
