// SPDX-License-Identifier: Apache-2.0
// GitLab behind the interface of forge/forge.h. Open it with forge/open/open.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forge/facts.h"
#include "forge/forge.h"
#include "forge/gitlab/branches.h"
#include "forge/gitlab/discussions.h"
#include "forge/gitlab/notes.h"

namespace forge {

extern const Facts kGitLabFacts;

// Borrows the client.
class GitLab : public Forge {
 public:
  GitLab(Client& client, Place place)
      : client_(client),
        place_(std::move(place)),
        project_{place_.repository, place_.project_id},
        notes_(client, project_, place_.number),
        discussions_(client, project_, place_.number),
        branches_(client, project_) {}

  const Place& place() const override { return place_; }
  const Capabilities& capabilities() const override { return kGitLabFacts.can; }
  Result<Viewer> AskViewer(Deadline deadline) override { return GitLabViewer(client_, deadline); }
  Comments& comments() override { return notes_; }
  Reviews& reviews() override { return discussions_; }
  Branches& branches() override { return branches_; }
  Result<std::optional<std::string>> ReadFile(const std::string& path, const std::string& commit,
                                              Deadline deadline) override;
  Status KeepStatus(const CommitStatus& status, Deadline deadline) override;
  Status AddLabels(int64_t number, const std::vector<std::string>& names,
                   Deadline deadline) override;
  bool may_have_arrived() const override { return client_.may_have_arrived(); }
  bool dry_run() const override { return client_.dry_run(); }

 private:
  Client& client_;
  Place place_;
  GitLabProject project_;
  GitLabNotes notes_;
  GitLabDiscussions discussions_;
  GitLabBranches branches_;
};

}  // namespace forge
