// SPDX-License-Identifier: Apache-2.0
// Reviews of a pull request and their threads, whatever the forge.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "forge/diff_file.h"

namespace forge {

// What a forge says of a pull request at this moment.
struct Proposal {
  std::string head_sha;
  std::string base_sha;
  std::string head_ref;
  std::string base_ref;
  bool from_fork = false;  // By the repositories' ids; also when the head's is gone.
  bool open = true;
};

// Reads a pull request as GitHub and Gitea describe it.
Result<Proposal> ParseProposal(const codec::Json& json);

// A thread of comments beside lines.
struct ReviewThread {
  std::string id;
  std::string first_text;  // Of its first comment.
  int64_t first_id = 0;    // REST's id of that comment.
  bool ours = false;       // The first comment is this token's.
  bool resolved = false;
  bool resolved_by_us = false;
  bool outdated = false;  // The lines have changed since.
  int comments = 0;
};

struct ReviewComment {
  std::string path;
  int line = 0;
  int end_line = 0;
  std::string text;
};

// The reviews of one pull request, on any forge.
class Reviews {
 public:
  virtual ~Reviews() = default;

  virtual Result<Proposal> ReadProposal(Deadline deadline) = 0;
  virtual Result<std::vector<DiffFile>> ReadFiles(Deadline deadline) = 0;
  virtual Result<std::vector<ReviewThread>> ReadThreads(Deadline deadline) = 0;

  // One review with all comments, which either all arrive or none. kInvalid (422) where a line is
  // not in the difference of `head_sha`.
  virtual Status Post(const std::string& head_sha, const std::string& text,
                      const std::vector<ReviewComment>& comments, Deadline deadline) = 0;
  // A comment on a file as a whole. kInvalid where the forge has none.
  virtual Status PostOnFile(const std::string& head_sha, const std::string& path,
                            const std::string& text, Deadline deadline) = 0;
  virtual Status Resolve(const std::string& thread_id, Deadline deadline) = 0;
  // One that is gone already is a success.
  virtual Status DeleteComment(int64_t id, Deadline deadline) = 0;
};

}  // namespace forge
