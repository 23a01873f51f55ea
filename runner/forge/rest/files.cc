// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/files.h"

#include "forge/objects.h"

namespace forge {
namespace {

constexpr char kReadPermission[] = "permissions: { contents: read }";

}  // namespace

Result<std::optional<std::string>> ReadRepositoryFile(Client& client, const std::string& repository,
                                                      const std::string& path,
                                                      const std::string& commit,
                                                      Deadline deadline) {
  ApiPath file = (ApiPath::Repository(repository) / "contents").Below(path).Query("ref", commit);
  return ReadFileOf(client.Get(file, kReadPermission, deadline), path, commit);
}

}  // namespace forge
