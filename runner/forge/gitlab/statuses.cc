// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/statuses.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr size_t kTextBytesMax = 255;
constexpr size_t kStatusesMax = 10'000;  // The statuses of one name, on one commit.

}  // namespace

Status KeepGitLabStatus(Client& client, const GitLabProject& project, const CommitStatus& status,
                        Deadline deadline) {
  const char* state = status.success ? "success" : "failed";
  const std::string name = codec::NeutralLine(status.context, kTextBytesMax);
  const std::string description = codec::NeutralLine(status.description, kTextBytesMax);
  std::vector<codec::Json> there = TRY(client.GetAll(
      (project.Path() / "repository" / "commits" / status.sha / "statuses").Query("name", name),
      kGitLabPermission, kStatusesMax, deadline));
  bool said = std::any_of(there.begin(), there.end(), [&](const codec::Json& entry) {
    return entry.StringAt("name") == name && entry.StringAt("status") == state &&
           entry.StringAt("description") == description &&
           entry.StringAt("target_url") == status.target_url;
  });
  if (said) return Ok();
  WriteRequest request{
      "POST", project.Path() / "statuses" / status.sha, {}, true, kGitLabPermission};
  request.body.Set("state", state).Set("name", name).Set("description", description);
  if (!status.ref.empty()) request.body.Set("ref", status.ref);
  if (!status.target_url.empty()) request.body.Set("target_url", status.target_url);
  TRY(client.Write(request, deadline));
  return Ok();
}

}  // namespace forge
