// SPDX-License-Identifier: Apache-2.0
// One repository and one of its pull requests, whichever forge has them. Capabilities say what a
// forge cannot do, so that an error need not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/branches.h"
#include "forge/comments.h"
#include "forge/event.h"
#include "forge/reviews.h"
#include "forge/statuses.h"

namespace forge {

// The place that is posted to.
struct Place {
  ForgeKind kind = ForgeKind::kGitHub;
  std::string repository;  // "owner/name"; "group/.../name" on GitLab.
  int64_t project_id = 0;  // GitLab's, which goes before the path; 0 if not known.
  int64_t number = 0;      // The pull request's number; 0 if none, so neither comments nor reviews.
};

struct Capabilities {
  std::string_view names;                      // "GitHub", for people.
  bool several = false;                        // It is the name of more than one.
  std::string_view proposal = "pull request";  // The name that people use for one.
  char sigil = '#';                            // The character before its number.
  bool check_runs = false;
  bool code_scanning = false;
  bool statements = false;          // A store of signed statements.
  bool comments_on_files = false;   // A comment on a file as a whole.
  bool line_ranges = false;         // One comment on several lines.
  bool suggestions = false;         // Blocks that a click applies.
  bool status_of_proposal = false;  // Statuses are of a merge request's head, and of nothing else.
  bool exact_commits = true;        // A commit is made on the branch's tip, or not at all.
};

class Forge {
 public:
  virtual ~Forge() = default;
  Forge() = default;
  Forge(const Forge&) = delete;
  Forge& operator=(const Forge&) = delete;

  virtual const Place& place() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // Asks for the user of the token.
  virtual Result<Viewer> AskViewer(Deadline deadline) = 0;
  // Return the comments and reviews of the pull request, and the branches of the repository; they
  // are owned by the forge.
  virtual Comments& comments() = 0;
  virtual Reviews& reviews() = 0;
  virtual Branches& branches() = 0;

  // Reads the file `path` of a commit, given by its id (a tag may have a branch's name), of at most
  // 1 MiB. Returns nullopt if there is none; fails with kInvalid if it is not a file, or larger.
  virtual Result<std::optional<std::string>> ReadFile(const std::string& path,
                                                      const std::string& commit,
                                                      Deadline deadline) = 0;
  // Sets the status, unless it says the same already.
  virtual Status KeepStatus(const CommitStatus& status, Deadline deadline) = 0;
  // Adds labels that the pull request `number` does not have. GitHub and GitLab create a label that
  // does not exist. Fails with kInvalid, and its name, if the forge does not create it (Gitea).
  virtual Status AddLabels(int64_t number, const std::vector<std::string>& names,
                           Deadline deadline) = 0;

  // Fails with kUnsupported without the capability.
  virtual Status PostCheckRun(const CheckRun& run, Deadline deadline);
  virtual Status UploadSarif(const SarifUpload& upload, Deadline deadline);
  virtual Status StoreStatement(const StatementUpload& upload, Deadline deadline);
  // Returns bundles, as JSON, of statements of that type about what has that SHA-256
  // (hexadecimal). They are not to be believed.
  virtual Result<std::vector<std::string>> FindStatements(const std::string& predicate_type,
                                                          const std::string& sha256,
                                                          Deadline deadline);

  // Returns whether the last request that failed may have been acted on all the same.
  virtual bool may_have_arrived() const = 0;
  // Requests that write are kept, not sent.
  virtual bool dry_run() const = 0;
};

// Returns "#7", or "!7" on GitLab: how people name a pull request.
inline std::string ReferenceTo(const Capabilities& forge, int64_t number) {
  return forge.sigil + std::to_string(number);
}

// Returns whether `name` can be a label's: 1 to 50 characters, none of them a control character or
// a comma.
bool ValidLabel(const std::string& name);

}  // namespace forge
