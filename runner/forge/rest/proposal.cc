// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/proposal.h"

#include "forge/rest/comments.h"

namespace forge {
namespace {

int64_t RepositoryId(const codec::Json* side) {
  const codec::Json* repository = side == nullptr ? nullptr : side->Find("repo");
  return repository == nullptr ? 0 : repository->IntegerAt("id");
}

std::string SideText(const codec::Json* side, const char* name) {
  return side == nullptr ? "" : side->StringAt(name);
}

}  // namespace

Result<Proposal> ParseProposal(const codec::Json& json) {
  const codec::Json* head = json.Find("head");
  const codec::Json* base = json.Find("base");
  Proposal proposal;
  proposal.head_sha = SideText(head, "sha");
  proposal.base_sha = SideText(base, "sha");
  proposal.head_ref = SideText(head, "ref");
  proposal.base_ref = SideText(base, "ref");
  proposal.from_fork = RepositoryId(base) == 0 || RepositoryId(head) != RepositoryId(base);
  proposal.open = json.StringAt("state") == "open";
  if (proposal.head_sha.empty()) {
    return Error{Code::kTemporary, "the forge's response is not a pull request"};
  }
  return proposal;
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

}  // namespace forge
