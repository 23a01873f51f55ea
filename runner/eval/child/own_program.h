// SPDX-License-Identifier: Apache-2.0
// This program, started again as a child.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/deadline.h"
#include "base/result.h"

namespace eval {

struct Answered {
  int status = 0;
  std::string output;  // Standard output and error.
};

class OwnProgram {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // Finds this program. `search_path` is the PATH of what it starts. Fails with kIo if this
  // program's file cannot be found.
  static Result<OwnProgram> Find(const std::string& search_path);

  const std::string& path() const { return path_; }
  // Starts it. `log` and `input` are borrowed, and as in Child::Command.
  Result<Child> Start(const std::vector<std::string>& words, const Variables& variables,
                      int log = -1, int input = -1) const;
  // Starts it, and waits until it ends. Kills it and fails with kTemporary at `deadline`.
  Result<Answered> Ask(const std::vector<std::string>& words, const Variables& variables,
                       Deadline deadline) const;

 private:
  OwnProgram(std::string path, std::string search_path)
      : path_(std::move(path)), search_path_(std::move(search_path)) {}
  std::string path_;
  std::string search_path_;
};

// Returns the error of a child that failed, by its exit status and what it complained of.
Error ErrorOf(const Answered& answered);

}  // namespace eval
