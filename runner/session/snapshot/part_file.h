// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace session {

// A file that appears whole under its name, or not: until then it has a hidden one.
class PartFile {
 public:
  // Opens one in `directory`, borrowed, for writing.
  static Result<PartFile> Create(int directory, mode_t mode);
  PartFile(PartFile&&) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  const Fd& fd() const { return file_; }
  // Gives it its name, in place of a file that has it.
  Status Publish(const std::string& name);

 private:
  PartFile(int directory, Fd file, std::string name)
      : directory_(directory), file_(std::move(file)), name_(std::move(name)) {}

  int directory_;
  Fd file_;           // Locked while it has
  std::string name_;  // a hidden name.
};

// Removes what processes that were interrupted left in `directory`: hidden files without a lock.
void RemoveLeftParts(int directory);

}  // namespace session
