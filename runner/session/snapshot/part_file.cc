// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/sys.h"
#include "base/tree.h"
#include "session/shell.h"

namespace session {
namespace {

constexpr char kPartPrefix[] = ".snapshot-";
constexpr int kAttemptsMax = 10;

}  // namespace

PartFile::PartFile(PartFile&& other) noexcept
    : directory_(other.directory_),
      file_(std::move(other.file_)),
      name_(std::exchange(other.name_, {})) {}

PartFile::~PartFile() {
  if (!name_.empty()) (void)::unlinkat(directory_, name_.c_str(), 0);
}

Result<PartFile> PartFile::Create(int directory, mode_t mode) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    std::string name = kPartPrefix + sys::RandomHex();
    Fd file = TRY(sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    PartFile part(directory, std::move(file), std::move(name));
    if (::flock(part.file_.get(), LOCK_EX) != 0) return Errno("flock");
    struct stat st {};
    if (::fstat(part.file_.get(), &st) != 0) return Errno("fstat");
    if (st.st_nlink > 0) return part;
    // Another process took it for a left one, before it was locked.
  }
  return Error{Code::kIo, "what is written is removed again"};
}

Status PartFile::Publish(const std::string& name) {
  if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) {
    return Errno("naming " + name);
  }
  name_.clear();
  return Ok();
}

void RemoveLeftParts(int directory) {
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory);
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (!name.starts_with(kPartPrefix)) continue;
    Result<Fd> file = sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file.ok() || ::flock(file.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)::unlinkat(directory, name.c_str(), 0);
  }
}

}  // namespace session
