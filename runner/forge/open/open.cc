// SPDX-License-Identifier: Apache-2.0
#include "forge/open/open.h"

#include "codec/text/neutral.h"
#include "forge/gitea/forge.h"
#include "forge/github/forge.h"
#include "forge/gitlab/forge.h"
#include "forge/rest/comments.h"

namespace forge {

const Capabilities& CapabilitiesOf(ForgeKind kind) {
  if (kind == ForgeKind::kGitLab) return GitLab::Can();
  return kind == ForgeKind::kGitea ? Gitea::Can() : GitHub::Can();
}

ClientOptions OptionsFor(const Place& place, const std::string& api_url) {
  const bool gitlab = place.kind == ForgeKind::kGitLab;
  ClientOptions options =
      gitlab ? GitLabClient({place.repository, place.project_id}, place.number)
             : RestClient(place.repository, place.number, place.kind == ForgeKind::kGitea);
  if (!api_url.empty()) options.api_url = api_url;
  return options;
}

Result<int64_t> FindProposal(Client& client, const Event& event, Deadline deadline) {
  constexpr size_t kOpenMax = 5000;
  const std::string owner = event.head_repository.substr(0, event.head_repository.find('/'));
  ApiPath pulls = (ApiPath::Repository(event.repository) / "pulls").Query("state", "open");
  // Gitea does not know the filter, and lists all.
  if (!owner.empty()) pulls = pulls.Query("head", owner + ":" + event.head_ref);
  int64_t number = 0;
  for (const codec::Json& json : TRY(client.GetAll(pulls, kPullsPermission, kOpenMax, deadline))) {
    const codec::Json* head = json.Find("head");
    if (head == nullptr || head->StringAt("sha") != event.head_sha) continue;
    if (number != 0) {
      return Error{Code::kRefused, "several pull requests have the head " + event.head_sha,
                   "--number NUMBER"};
    }
    number = json.IntegerAt("number");
  }
  return number;
}

Result<std::unique_ptr<Forge>> Open(Client& client, const Place& place) {
  const bool gitlab = place.kind == ForgeKind::kGitLab;
  if (gitlab ? !ValidProject(place.repository) : !ValidRepository(place.repository)) {
    return Error{Code::kInvalid,
                 "invalid repository: '" + codec::NeutralLine(place.repository, 200) + "'",
                 gitlab ? "--repository GROUP/NAME" : "--repository OWNER/NAME"};
  }
  if (place.number < 0) {
    return Error{Code::kInvalid, "no pull request to post to", "--number NUMBER"};
  }
  std::unique_ptr<Forge> opened;
  switch (place.kind) {
    case ForgeKind::kGitLab:
      opened = std::make_unique<GitLab>(client, place);
      break;
    case ForgeKind::kGitea:
      opened = std::make_unique<Gitea>(client, place);
      break;
    case ForgeKind::kGitHub:
    case ForgeKind::kNone:
      opened = std::make_unique<GitHub>(client, place);
      break;
  }
  return opened;
}

}  // namespace forge
