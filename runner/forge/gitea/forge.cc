// SPDX-License-Identifier: Apache-2.0
#include "forge/gitea/forge.h"

namespace forge {

const Capabilities& Gitea::Can() {
  static constexpr Capabilities kGitea = [] {
    Capabilities can;
    can.names = "Gitea and Forgejo";
    can.several = true;
    return can;
  }();
  return kGitea;
}

}  // namespace forge
