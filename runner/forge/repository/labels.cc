// SPDX-License-Identifier: Apache-2.0
#include "forge/repository/labels.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "codec/text/utf8.h"
#include "forge/github_comments.h"

namespace forge {
namespace {

constexpr size_t kLabelCharactersMax = 50;     // GitHub's bound.
constexpr size_t kPullRequestLabelsMax = 100;  // Of one pull request, on GitHub.

bool HasLabel(const codec::Json& labels, const std::string& name) {
  if (labels.array() == nullptr) return false;
  return std::any_of(labels.array()->begin(), labels.array()->end(),
                     [&](const codec::Json& label) { return label.StringAt("name") == name; });
}

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

bool ValidLabel(const std::string& name) {
  auto characters =
      std::count_if(name.begin(), name.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; });
  bool plain = std::none_of(name.begin(), name.end(),
                            [](unsigned char c) { return c < 0x20 || c == 0x7f || c == ','; });
  return !name.empty() && characters <= static_cast<int64_t>(kLabelCharactersMax) && plain &&
         codec::FindInvalidUtf8(name) == std::string_view::npos;
}

Status AddLabels(Client& client, const std::string& repository, int64_t number,
                 const std::vector<std::string>& names, Deadline deadline) {
  std::string path = "/repos/" + repository + "/issues/" + std::to_string(number) + "/labels";
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

Status AddGitLabLabels(Client& client, const GitLabProject& project, int64_t number,
                       const std::vector<std::string>& names, Deadline deadline) {
  const std::string path = project.ApiPath() + "/merge_requests/" + std::to_string(number);
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
