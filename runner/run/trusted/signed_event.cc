// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/signed_event.h"

#include "forge/open/open.h"

namespace run {

Trust RequireSignature(const forge::Event& event, bool is_signed, const Trust& trust) {
  if (!trust.trusted || is_signed || event.kind != forge::EventKind::kPullRequest) return trust;
  const forge::Facts& forge = forge::FactsOf(event.forge);
  return {false,
          "the " + std::string(forge.can.proposal) +
              "'s variables can be forged, as the job has no ID token (" +
              std::string(forge.id_token) + ")",
          std::string(forge.id_token_hint)};
}

}  // namespace run
