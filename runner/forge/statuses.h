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
  std::string context;  // The name that identifies it: later ones with it replace it.
  bool success = false;
  std::string description;  // Cut at the forge's bound.
  std::string target_url;   // May be empty.
};

// A check run, for GitHub alone.
struct CheckRun {
  std::string name;         // The name that people see and branch protection uses.
  std::string external_id;  // The same for the same report, so that a repetition is recognised.
  std::string head_sha;
  std::string conclusion;  // "success", "neutral" or "failure".
  std::string title;
  std::string summary;  // Markdown; cut at GitHub's bound of 65 535 characters.
  std::string details_url;
  std::vector<Annotation> annotations;
};

// A SARIF report to be uploaded, for GitHub alone.
struct SarifUpload {
  std::string commit_sha;
  std::string ref;    // "refs/heads/main", "refs/pull/7/head".
  std::string sarif;  // The log's text.
};

// A signed statement to be kept, for GitHub alone.
struct StatementUpload {
  std::string bundle;          // Sigstore's, as JSON.
  std::string predicate_type;  // By its type and a subject's SHA-256, in hexadecimal, it is found.
  std::string sha256;
};

}  // namespace forge
