// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "eval/suite/suite.h"

namespace eval {

// A directory of its own with the files of a cell: what the agent works on. Its path, which the
// agent sees, says nothing of suites or tasks. Removed when this goes out of scope.
class Checkout {
 public:
  // Makes one in TMPDIR.
  static Result<Checkout> Create(const std::vector<SeedFile>& files,
                                 const std::vector<SeedCommit>& commits);
  Checkout(Checkout&&) noexcept = default;
  Checkout& operator=(Checkout&&) = delete;
  ~Checkout();

  std::string path() const { return holder_ + "/checkout"; }

 private:
  Checkout(std::string holder, Fd lock) : holder_(std::move(holder)), lock_(std::move(lock)) {}
  std::string holder_;
  Fd lock_;  // The holder, locked while it is in use; invalid if moved from.
};

// Removes the checkouts that killed processes of this user left in TMPDIR.
void RemoveLeftCheckouts();

}  // namespace eval
