// SPDX-License-Identifier: Apache-2.0
// The parts of a forge that are the same for GitHub, Gitea and Forgejo.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forge/client.h"
#include "forge/facts.h"
#include "forge/forge.h"
#include "forge/rest/comments.h"
#include "forge/rest/event.h"
#include "forge/rest/proposal.h"

namespace forge {

// Borrows the client.
class RestForge : public Forge {
 public:
  RestForge(Client& client, Place place)
      : client_(client),
        place_(std::move(place)),
        comments_(client, place_.repository, place_.number) {}

  const Place& place() const override { return place_; }
  Result<Viewer> AskViewer(Deadline deadline) override { return WhoAmI(client_, deadline); }
  Comments& comments() override { return comments_; }
  Result<std::optional<std::string>> ReadFile(const std::string& path, const std::string& commit,
                                              Deadline deadline) override;
  Status KeepStatus(const CommitStatus& status, Deadline deadline) override;
  Status AddLabels(int64_t number, const std::vector<std::string>& names,
                   Deadline deadline) override;
  bool may_have_arrived() const override { return client_.may_have_arrived(); }
  bool dry_run() const override { return client_.dry_run(); }

 protected:
  Client& client_;

 private:
  Place place_;
  GitHubComments comments_;
};

// Returns what the rows of GitHub and of Gitea, of `kKind`, have in common.
template <ForgeKind kKind>
constexpr Facts ActionsFacts() {
  Facts facts;
  facts.kind = kKind;
  facts.variables = kActionsVariables;
  facts.prefixes = kActionsPrefixes;
  facts.event_file = "GITHUB_EVENT_PATH";
  facts.parse_event = [](const EnvironmentReader& environment, std::string_view payload) {
    return ParseActionsEvent(environment, kKind, payload);
  };
  facts.parse_text = [](const EnvironmentReader&, std::string_view payload) {
    return ParseActionsText(payload);
  };
  facts.events = kActionsEvents;
  facts.log_commands = codec::LogCommands::kWorkflow;
  facts.starter = StarterProof::kPermission;
  facts.token = "GITHUB_TOKEN";
  facts.client = [](const Place& place) {
    return RestClient(place.repository, place.number, kKind == ForgeKind::kGitea);
  };
  facts.find_proposal = FindProposal;
  return facts;
}

}  // namespace forge
