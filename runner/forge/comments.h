// SPDX-License-Identifier: Apache-2.0
// The comments in the conversation of a pull request, whatever the forge.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"

namespace forge {

struct Comment {
  int64_t id = 0;
  int64_t author_id = 0;  // 0 if the account was deleted.
  std::string author_login;
  std::string url;  // For people; empty if the service gave none that is an http address.
  std::string text;
};

// The user of a token. An id of 0 is not known; then the login decides.
struct Viewer {
  int64_t id = 0;
  std::string login;
  bool Wrote(int64_t author_id, const std::string& author_login) const;
};

// Returns the id of the user in the member `name` of what a forge says; 0 if there is none.
int64_t UserIdAt(const codec::Json& json, const char* name);

// The comments on one pull request, as one token may see and change them. The values of a dry run
// are empty.
class Comments {
 public:
  virtual ~Comments() = default;

  // Returns all of them, oldest first; fails with kInvalid beyond 10 000.
  virtual Result<std::vector<Comment>> List(Deadline deadline) = 0;
  // Creates a comment. Fails with kTemporary if the request may have arrived, and does not repeat
  // it; the caller looks whether it did.
  virtual Result<Comment> Create(const std::string& text, Deadline deadline) = 0;
  // Fails with kNotFound if the comment is gone.
  virtual Result<Comment> Update(int64_t id, const std::string& text, Deadline deadline) = 0;
  // Deletes a comment. Succeeds if it is gone already.
  virtual Status Delete(int64_t id, Deadline deadline) = 0;
};

}  // namespace forge
