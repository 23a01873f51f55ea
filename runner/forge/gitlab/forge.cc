// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/forge.h"

#include "forge/gitlab/labels.h"
#include "forge/gitlab/statuses.h"
#include "forge/objects.h"

namespace forge {

const Capabilities& GitLab::Can() {
  static constexpr Capabilities kGitLab = [] {
    Capabilities can;
    can.names = "GitLab";
    can.proposal = "merge request";
    can.sigil = '!';
    can.comments_on_files = true;
    can.suggestions = true;
    can.status_of_proposal = true;
    can.exact_commits = false;
    return can;
  }();
  return kGitLab;
}

Result<std::optional<std::string>> GitLab::ReadFile(const std::string& path,
                                                    const std::string& commit, Deadline deadline) {
  ApiPath file = (project_.Path() / "repository" / "files" / path).Query("ref", commit);
  return ReadFileOf(client_.Get(file, kGitLabPermission, deadline), path, commit);
}

Status GitLab::KeepStatus(const CommitStatus& status, Deadline deadline) {
  return KeepGitLabStatus(client_, project_, status, deadline);
}

Status GitLab::AddLabels(int64_t number, const std::vector<std::string>& names, Deadline deadline) {
  return AddGitLabLabels(client_, project_, number, names, deadline);
}

}  // namespace forge
