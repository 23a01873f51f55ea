// SPDX-License-Identifier: Apache-2.0
#include "forge/permission.h"

#include <algorithm>

#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr char kMetadataPermission[] = "permissions: { metadata: read }";

std::string LoginAt(const codec::Json& payload, std::initializer_list<std::string_view> path) {
  const codec::Json* at = &payload;
  for (std::string_view name : path) {
    at = at->Find(name);
    if (at == nullptr) return "";
  }
  return at->StringAt("login");
}

}  // namespace

Result<Permission> ReadPermission(Client& client, const std::string& repository,
                                  const std::string& login, Deadline deadline) {
  Result<codec::Json> found =
      client.Get(ApiPath::Repository(repository) / "collaborators" / login / "permission",
                 kMetadataPermission, deadline);
  if (!found.ok() && found.error().code == Code::kNotFound) return Permission::kNone;
  codec::Json json = TRY(std::move(found));
  std::string permission = json.StringAt("permission");
  if (permission == "admin" || permission == "write" || permission == "owner") {
    return Permission::kWrite;
  }
  if (permission == "read") return Permission::kRead;
  if (permission == "none") return Permission::kNone;
  return Error{Code::kTemporary, "the forge's response is not a permission"};
}

std::vector<std::string> ReadActors(const EnvironmentReader& environment,
                                    const codec::Json& payload) {
  std::vector<std::string> actors;
  auto add = [&actors](const std::string& login) {
    bool known = std::find(actors.begin(), actors.end(), login) != actors.end();
    if (!login.empty() && !known) actors.push_back(login);
  };
  for (const char* variable : {"GITHUB_TRIGGERING_ACTOR", "GITHUB_ACTOR"}) {
    add(environment(variable).value_or(""));
  }
  add(LoginAt(payload, {"comment", "user"}));
  add(LoginAt(payload, {"review", "user"}));
  add(LoginAt(payload, {"workflow_run", "actor"}));
  add(LoginAt(payload, {"workflow_run", "triggering_actor"}));
  return actors;
}

}  // namespace forge
