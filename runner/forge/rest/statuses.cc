// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/statuses.h"

#include "codec/text/neutral.h"

namespace forge {
namespace {

constexpr size_t kDescriptionBytesMax = 140;  // GitHub's bound.
constexpr char kStatusPermission[] = "permissions: { statuses: write }";

const char* StateOf(const CommitStatus& status) { return status.success ? "success" : "failure"; }

// "state" of GitHub, "status" of Gitea.
bool SaysThis(const codec::Json& entry, const CommitStatus& status,
              const std::string& description) {
  std::string state = entry.StringAt("state");
  if (state.empty()) state = entry.StringAt("status");
  return entry.StringAt("context") == status.context && state == StateOf(status) &&
         entry.StringAt("description") == description &&
         entry.StringAt("target_url") == status.target_url;
}

}  // namespace

Status KeepStatus(Client& client, const std::string& repository, const CommitStatus& status,
                  Deadline deadline) {
  const ApiPath base = ApiPath::Repository(repository);
  std::string description = codec::NeutralLine(status.description, kDescriptionBytesMax);
  codec::Json combined =
      TRY(client.Get(base / "commits" / status.sha / "status", kStatusPermission, deadline));
  const codec::Json* statuses = combined.Find("statuses");
  if (statuses != nullptr && statuses->array() != nullptr) {
    for (const codec::Json& entry : *statuses->array()) {
      if (SaysThis(entry, status, description)) return Ok();
    }
  }
  WriteRequest request{"POST", base / "statuses" / status.sha, {}, true, kStatusPermission};
  request.body.Set("state", StateOf(status))
      .Set("context", status.context)
      .Set("description", description);
  if (!status.target_url.empty()) request.body.Set("target_url", status.target_url);
  TRY(client.Write(request, deadline));
  return Ok();
}

}  // namespace forge
