// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/labels.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "forge/rest/comments.h"

namespace forge {
namespace {

constexpr size_t kPullRequestLabelsMax = 100;  // The labels of one pull request, on GitHub.

bool HasLabel(const codec::Json& labels, const std::string& name) {
  if (labels.array() == nullptr) return false;
  return std::any_of(labels.array()->begin(), labels.array()->end(),
                     [&](const codec::Json& label) { return label.StringAt("name") == name; });
}

}  // namespace

Status AddLabels(Client& client, const std::string& repository, int64_t number,
                 const std::vector<std::string>& names, Deadline deadline) {
  const ApiPath path = ApiPath::Repository(repository) / "issues" / number / "labels";
  codec::Json there;
  for (codec::Json& label :
       TRY(client.GetAll(path, kPullsPermission, kPullRequestLabelsMax, deadline))) {
    there.Push(std::move(label));
  }
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!HasLabel(there, name)) missing.push_back(name);
  }
  if (missing.empty()) return Ok();
  WriteRequest request{"POST", path, {}, true, kPullsPermission};
  request.body.Set("labels", codec::Json::FromStrings(missing));
  std::optional<codec::Json> now = TRY(client.Write(request, deadline));
  if (!now) return Ok();
  for (const std::string& name : missing) {
    if (HasLabel(*now, name)) continue;
    return Error{Code::kInvalid,
                 "the repository has no label '" + codec::NeutralLine(name, 100) + "'"};
  }
  return Ok();
}

}  // namespace forge
