// SPDX-License-Identifier: Apache-2.0
// Reviews of a pull request and their threads, whatever the forge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "forge/diff_file.h"

namespace forge {

// A pull request as the forge has it at this moment.
struct Proposal {
  std::string head_sha;
  std::string base_sha;
  std::string head_ref;
  std::string base_ref;
  bool from_fork = false;  // By the repositories' ids; also when the head's is gone.
  bool open = true;
  size_t files = 0;  // The number of files that it changes; 0 if the forge does not say.
};

// A thread of comments beside lines.
struct ReviewThread {
  std::string id;
  std::string first_text;  // The text of its first comment.
  int64_t first_id = 0;    // REST's id of that comment.
  std::string first_node;  // GraphQL's id of it; empty on other forges.
  bool ours = false;       // The first comment is this token's.
  bool resolved = false;
  bool resolved_by_us = false;
  bool outdated = false;  // The lines have changed since.
  int line = 0;           // The last it is about, in the head's file; 0 if unknown, or the file.
  // It was posted at another head, and the forge moves neither its line nor says that it changed.
  bool stale = false;
  bool hidden = false;  // Its first comment is minimised.
  int comments = 0;
};

struct EmptyReview {
  int64_t id = 0;
  std::string text;
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

  // Posts one review with all comments (at most comments_max()), which either all arrive or none.
  // Fails with kInvalid if a line is not in the difference of `head_sha`.
  virtual Status Post(const std::string& head_sha, const std::string& text,
                      const std::vector<ReviewComment>& comments, Deadline deadline) = 0;
  // Posts a comment on a file as a whole. Fails with kInvalid if the forge has none.
  virtual Status PostOnFile(const std::string& head_sha, const std::string& path,
                            const std::string& text, Deadline deadline) = 0;
  virtual Status Resolve(const std::string& thread_id, Deadline deadline) = 0;
  virtual Status Reopen(const std::string& thread_id, Deadline deadline) = 0;
  // Folds the first comment away as outdated, where a thread may not be resolved. Fails with
  // kRefused if the forge has no such thing.
  virtual Status Hide(const ReviewThread&, Deadline) {
    return Error{Code::kRefused, "this forge has no minimised comments"};
  }
  // Deletes a comment. Succeeds if it is gone already.
  virtual Status DeleteComment(int64_t id, Deadline deadline) = 0;

  // Returns the token's own reviews that have a text and no comments any more, as of ReadThreads().
  const std::vector<EmptyReview>& empty_reviews() const { return empty_reviews_; }
  // Takes back one of them, as far as the forge can: another one of the same moment has its
  // comments.
  virtual Status Retire(int64_t, Deadline) { return Ok(); }

  virtual size_t comments_max() const { return std::numeric_limits<size_t>::max(); }
  // Returns the language of the block that replaces `lines` lines, the last of which carries the
  // comment.
  virtual std::string SuggestionFence(int) const { return "suggestion"; }

 protected:
  std::vector<EmptyReview> empty_reviews_;
};

}  // namespace forge
