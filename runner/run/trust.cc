// SPDX-License-Identifier: Apache-2.0
#include "run/trust.h"

namespace run {

Trust JudgeTrust(const forge::Event& event) {
  if (event.forge == forge::ForgeKind::kNone) return {true, "started from a command line"};
  if (event.fork) return {false, "the pull request comes from a fork"};
  return {true, event.name.empty() ? "started by the forge" : "started by " + event.name};
}

std::string PolicyRef(const forge::Event& event, const std::string& asked) {
  if (!asked.empty()) return asked;
  // A pull request's base by its commit: the branch may have moved, or not been fetched by name.
  bool proposal = event.proposal_number > 0;
  if (proposal && !event.base_sha.empty()) return event.base_sha;
  if (proposal && !event.base_ref.empty()) return event.base_ref;
  return "HEAD";
}

}  // namespace run
