// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/forge.h"

#include "forge/rest/files.h"
#include "forge/rest/labels.h"
#include "forge/rest/statuses.h"

namespace forge {

Result<std::optional<std::string>> RestForge::ReadFile(const std::string& path,
                                                       const std::string& commit,
                                                       Deadline deadline) {
  return ReadRepositoryFile(client_, place_.repository, path, commit, deadline);
}

Status RestForge::KeepStatus(const CommitStatus& status, Deadline deadline) {
  return forge::KeepStatus(client_, place_.repository, status, deadline);
}

Status RestForge::AddLabels(int64_t number, const std::vector<std::string>& names,
                            Deadline deadline) {
  return forge::AddLabels(client_, place_.repository, number, names, deadline);
}

}  // namespace forge
