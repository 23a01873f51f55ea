// SPDX-License-Identifier: Apache-2.0
#include "forge/gitea/forge.h"

namespace forge {

namespace {

constexpr const char* kGiteaFlags[] = {"GITEA_ACTIONS", "FORGEJO_ACTIONS"};

}  // namespace

constexpr Facts kGiteaFacts = [] {
  Facts facts = ActionsFacts<ForgeKind::kGitea>();
  facts.name = "gitea";
  facts.can.names = "Gitea and Forgejo";
  facts.can.several = true;
  facts.flags = kGiteaFlags;
  facts.open = OpenAs<Gitea>;
  return facts;
}();

}  // namespace forge
