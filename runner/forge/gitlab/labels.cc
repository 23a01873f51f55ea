// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/labels.h"

#include <algorithm>

#include "codec/text/neutral.h"

namespace forge {
namespace {

// GitLab lists names alone.
bool GitLabHasLabel(const codec::Json& request, const std::string& name) {
  const codec::Json* labels = request.Find("labels");
  if (labels == nullptr || labels->array() == nullptr) return false;
  return std::any_of(labels->array()->begin(), labels->array()->end(),
                     [&](const codec::Json& label) {
                       return label.string() != nullptr && *label.string() == name;
                     });
}

}  // namespace

Status AddGitLabLabels(Client& client, const GitLabProject& project, int64_t number,
                       const std::vector<std::string>& names, Deadline deadline) {
  const ApiPath path = project.Path() / "merge_requests" / number;
  codec::Json there = TRY(client.Get(path, kGitLabPermission, deadline));
  std::string missing;
  for (const std::string& name : names) {
    if (GitLabHasLabel(there, name)) continue;
    missing += (missing.empty() ? "" : ",") + name;
  }
  if (missing.empty()) return Ok();
  WriteRequest request{"PUT", path, {}, true, kGitLabPermission};
  request.body.Set("add_labels", missing);
  std::optional<codec::Json> now = TRY(client.Write(request, deadline));
  if (!now) return Ok();
  for (const std::string& name : names) {
    if (GitLabHasLabel(*now, name)) continue;
    return Error{Code::kInvalid,
                 "GitLab did not add the label '" + codec::NeutralLine(name, 100) + "'"};
  }
  return Ok();
}

}  // namespace forge
