// SPDX-License-Identifier: Apache-2.0
// The changes of a command or a sandbox as messages of the protocol: their names, and a list
// within the bound of a message.
#pragma once

#include <utility>
#include <vector>

#include "change/capture.h"
#include "session/protocol.h"

namespace session {

inline const char* NameOf(change::ChangeKind kind) {
  switch (kind) {
    case change::ChangeKind::kCreated:
      return "created";
    case change::ChangeKind::kModified:
      return "modified";
    case change::ChangeKind::kDeleted:
      return "deleted";
    case change::ChangeKind::kRenamed:
      return "renamed";
    case change::ChangeKind::kMode:
      break;
  }
  return "mode";
}

// Adds as many changes as one message holds. Returns false if there were more.
template <typename Changes>
bool AddChanges(const Changes& changes, std::vector<FileChange>* list) {
  size_t bytes = 0;
  for (const auto& change : changes) {
    FileChange file{NameOf(change.kind), change.path, change.old_path, false};
    if constexpr (requires { change.directory; }) file.directory = change.directory;
    bytes += file.path.size() + file.old_path.size() + 32;
    if (bytes > kChangesBytesMax) return false;
    list->push_back(std::move(file));
  }
  return true;
}

}  // namespace session
