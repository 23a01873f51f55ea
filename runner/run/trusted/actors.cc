// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/actors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "codec/text/neutral.h"
#include "forge/client.h"
#include "forge/rest/comments.h"
#include "forge/rest/proposal.h"

namespace run {
namespace {

constexpr std::string_view kBot = "[bot]";

// These take write access, or a file that a person with write access merged.
constexpr std::array<std::string_view, 6> kEventsOfWriters = {
    "merge_group", "push", "release", "repository_dispatch", "schedule", "workflow_dispatch"};

// A head in the repository itself was pushed by someone who may write, and JudgeTrust() refuses any
// other. Every other event can be caused by a comment or an issue, which are open to strangers.
constexpr std::array<std::string_view, 3> kEventsOfBranches = {
    "pull_request", "pull_request_target", "workflow_run"};

template <size_t N>
bool IsOneOf(const std::array<std::string_view, N>& events, const forge::Event& event) {
  return std::find(events.begin(), events.end(), event.name) != events.end();
}

std::string Shown(const std::string& login) { return codec::NeutralLine(login, 100); }

// Reads the head for an event about a pull request that does not say where that is, such as a
// comment.
Status ReadHeadOf(forge::Client& client, forge::Event& event, Deadline deadline) {
  codec::Json json =
      TRY(client.Get(forge::ApiPath::Repository(event.repository) / "pulls" / event.proposal_number,
                     "permissions: { pull-requests: read }", deadline));
  forge::Proposal proposal = TRY(forge::ParseProposal(json));
  if (!forge::ValidRef(proposal.head_ref)) {
    return Error{Code::kRefused, "head is an unsupported branch name"};
  }
  event.head_ref = proposal.head_ref;
  event.head_sha = proposal.head_sha;
  event.head_origin = proposal.from_fork ? forge::HeadOrigin::kFork : forge::HeadOrigin::kBase;
  return Ok();
}

// Judges a run about a fork's pull request under `forks: model`.
Result<Trust> JudgeForkModel(const forge::Event& event, const ForkRun& run, const Trust& trust,
                             const PermissionReader& reader) {
  if (trust.trusted || event.head_origin != forge::HeadOrigin::kFork) return trust;
  auto without = [&](const std::string& why) {
    return Trust{false, trust.reason + ", and has no model under forks: model: " + why};
  };
  if (event.kind != forge::EventKind::kPullRequestTarget || run.action != "labeled") {
    return without("no one has labeled it in this event (pull_request_target, types: [labeled])");
  }
  if (event.head_sha.empty() || run.head != event.head_sha) {
    return without("the checkout is not the commit that was labeled, " +
                   event.head_sha.substr(0, 12));
  }
  if (!run.has_budget) return without("the run has no budget, such as limits: { max_cost: 1 }");
  if (event.actors.empty()) return without("the event does not say who labeled it");
  for (const std::string& actor : event.actors) {
    if (actor.ends_with(kBot)) return without(Shown(actor) + " is not a person");
    if (!reader) {
      return without("without GITHUB_TOKEN, the forge cannot be asked whether " + Shown(actor) +
                     " may write to " + event.repository);
    }
    if (TRY(reader(actor)) != forge::Permission::kWrite) {
      return without("the account " + Shown(actor) + " may not write to " + event.repository);
    }
  }
  return Trust{false,
               trust.reason + ", which " + Shown(event.actors.front()) +
                   " has labeled: it has its model alone",
               "", true};
}

}  // namespace

bool ValidBot(std::string_view name) {
  if (!name.ends_with(kBot)) return false;
  name.remove_suffix(kBot.size());
  return !name.empty() && name.size() <= 100 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return ascii::IsAlphanumeric(c) || c == '-'; });
}

Result<Trust> JudgeActors(const forge::Event& event, const Trust& trust,
                          const std::vector<std::string>& bots, const PermissionReader& reader,
                          const std::optional<ForkRun>& fork) {
  if (fork && !trust.trusted) return JudgeForkModel(event, *fork, trust, reader);
  if (!trust.trusted || event.forge == forge::ForgeKind::kNone ||
      IsOneOf(kEventsOfWriters, event)) {
    return trust;
  }
  if (event.actors.empty()) return Trust{false, "the event does not say who started the run"};
  for (const std::string& actor : event.actors) {
    bool listed = std::find(bots.begin(), bots.end(), actor) != bots.end();
    if (ValidBot(actor) && listed) continue;
    // No person's name ends so.
    if (actor.ends_with(kBot)) {
      return Trust{false,
                   "the account " + Shown(actor) + " is not listed in bots of the configuration"};
    }
    if (!reader) {
      if (IsOneOf(kEventsOfBranches, event)) continue;
      return Trust{false, "without GITHUB_TOKEN, the forge cannot be asked whether " +
                              Shown(actor) + " may write to " + event.repository};
    }
    if (TRY(reader(actor)) == forge::Permission::kWrite) continue;
    return Trust{false, "the account " + Shown(actor) + " may not write to " + event.repository};
  }
  return trust;
}

Result<Trust> AskForge(forge::Event& event, const std::vector<std::string>& bots,
                       const std::optional<ForkRun>& fork, ForgeAccess access, Deadline deadline) {
  forge::ClientOptions options = forge::RestClient(event.repository, event.proposal_number, false);
  options.api_url = event.api_url;
  options.token = std::move(access.token);
  options.ca_file = std::move(access.ca_file);
  options.proxy = std::move(access.proxy);
  forge::Client client = TRY(forge::Client::Create(std::move(options)));
  bool unsaid = event.head_origin == forge::HeadOrigin::kUnknown && event.head_sha.empty() &&
                event.proposal_number > 0;
  if (unsaid) TRY(ReadHeadOf(client, event, deadline));
  const PermissionReader reader = [&](const std::string& login) {
    return forge::ReadPermission(client, event.repository, login, deadline);
  };
  return JudgeActors(event, JudgeTrust(event), bots, reader, fork);
}

}  // namespace run
