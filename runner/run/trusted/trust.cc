// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/trust.h"

#include <string_view>

#include "forge/open/open.h"

namespace run {
namespace {

std::string UnreadCi(const forge::Event& event) {
  return event.unread_ci + " is set, and agentic-ci does not read the events of this CI system";
}

// Returns whether `ref` names what a pull request proposes: GitHub's own ref of one, or the branch
// of the event's. The checkout may have taken a later commit from it than the event names. A fork's
// branch is not here under its name, which often is the base's.
bool IsProposed(const forge::Event& event, std::string_view ref) {
  for (const char* pulls : {"pull/", "refs/pull/", "refs/remotes/pull/"}) {
    if (ref.starts_with(pulls) && (ref.ends_with("/head") || ref.ends_with("/merge"))) return true;
  }
  if (event.head_origin != forge::HeadOrigin::kBase) return false;
  for (const char* branches : {"", "origin/", "refs/heads/", "refs/remotes/origin/"}) {
    if (ref == branches + event.head_ref) return true;
  }
  return false;
}

Result<TrustedRef> CheckAsked(const forge::Event& event, const std::string& asked) {
  TrustedRef ref{asked};
  if (asked == kWorktree) return ref;
  const bool proposal = event.proposal_number > 0;
  if (proposal && IsProposed(event, asked)) return RefuseProposed(asked);
  if (proposal && !event.head_sha.empty()) ref.refused.push_back(event.head_sha);
  if (!event.merge_sha.empty()) ref.refused.push_back(event.merge_sha);
  return ref;
}

}  // namespace

Trust JudgeTrust(const forge::Event& event) {
  if (!event.unread_ci.empty())
    return {false, UnreadCi(event) + ": it is unknown who started the run"};
  if (event.forge == forge::ForgeKind::kNone) return {true, "started from a command line"};
  const forge::Facts& facts = forge::FactsOf(event.forge);
  if (facts.starter == forge::StarterProof::kNone) {
    return {false, "agentic-ci does not find out who started a run on this forge"};
  }
  const std::string name = event.name.empty() ? "forge's" : event.name;
  const std::string proposal(facts.can.proposal);
  switch (event.head_origin) {
    case forge::HeadOrigin::kBase:
      break;
    case forge::HeadOrigin::kFork:
      if (event.proposal_number > 0) return {false, "the " + proposal + " comes from a fork"};
      return {false, "the head of this " + name + " is in another repository"};
    case forge::HeadOrigin::kUnknown:
      return {false, "the " + name + " event does not say which repository " +
                         (event.proposal_number > 0 ? "the " + proposal + "'s head" : "its head") +
                         " is in"};
  }
  return {true, event.name.empty() ? "started by the forge" : "started by " + event.name};
}

Result<TrustedRef> FindTrustedRef(const forge::Event& event, const std::string& asked) {
  if (!asked.empty()) return CheckAsked(event, asked);
  if (!event.unread_ci.empty()) {
    return Error{
        Code::kSetup,
        UnreadCi(event) + ": the run must say where its policy comes from, and it gets no secrets",
        "--policy-ref REF"};
  }
  if (event.forge == forge::ForgeKind::kNone) return TrustedRef{"HEAD", true};
  if (!event.trusted_sha.empty()) return TrustedRef{event.trusted_sha};
  if (!event.trusted_ref.empty()) return TrustedRef{event.trusted_ref, false, event.trusted_fetch};
  return Error{Code::kSetup,
               "the " + (event.name.empty() ? "forge's" : event.name) +
                   " event does not name a commit of the repository to read the policy from",
               "--policy-ref REF"};
}

}  // namespace run
