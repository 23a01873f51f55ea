// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/proposal.h"

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

}  // namespace forge
