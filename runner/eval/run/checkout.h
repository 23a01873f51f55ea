// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/suite/suite.h"

namespace eval {

// A directory of its own with the files of a cell: what the agent works on. Its path, which the
// agent sees, says nothing of suites or tasks. Removed when this goes out of scope.
class Checkout {
 public:
  static Result<Checkout> Create(const std::vector<SeedFile>& files,
                                 const std::vector<SeedCommit>& commits);
  Checkout(Checkout&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  Checkout& operator=(Checkout&&) = delete;
  ~Checkout();

  const std::string& path() const { return path_; }

 private:
  explicit Checkout(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace eval
