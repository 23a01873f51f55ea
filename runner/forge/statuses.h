// SPDX-License-Identifier: Apache-2.0
// The statements about a commit that a forge may take.
#pragma once

#include <string>
#include <vector>

#include "forge/actions.h"

namespace forge {

struct CommitStatus {
  std::string sha;
  std::string ref;      // The branch, where GitLab is to show it; may be empty.
  std::string context;  // What tells it from others: later ones replace it.
  bool success = false;
  std::string description;  // Cut at the forge's bound.
  std::string target_url;   // May be empty.
};

// GitHub's alone.
struct CheckRun {
  std::string name;         // As people see it, and as branch protection names it.
  std::string external_id;  // The same for the same report: what tells a repetition.
  std::string head_sha;
  std::string conclusion;  // "success", "neutral" or "failure".
  std::string title;
  std::string summary;  // Markdown; cut at GitHub's bound of 65 535 characters.
  std::string details_url;
  std::vector<Annotation> annotations;
};

// Likewise.
struct SarifUpload {
  std::string commit_sha;
  std::string ref;    // "refs/heads/main", "refs/pull/7/head".
  std::string sarif;  // The log's text.
};

}  // namespace forge
