// SPDX-License-Identifier: Apache-2.0
#include "change/given/given_files.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <utility>

#include "base/deadline.h"
#include "base/sys.h"
#include "change/tree_file.h"
#include "change/upper_walk.h"

namespace change {
namespace {

constexpr int64_t kEntriesMax = 1'000'000;

std::optional<FileContent> ContentOf(int checkout, const Repository* repository,
                                     const std::string& path, const timespec& since) {
  struct stat before {};
  struct stat after {};
  auto look = [&](struct stat* st) {
    return ::fstatat(checkout, path.c_str(), st, AT_SYMLINK_NOFOLLOW) == 0 &&
           !IsLater(st->st_ctim, since);
  };
  if (!look(&before)) return std::nullopt;
  if (repository != nullptr) {
    std::optional<std::string> clean = repository->CleanBlob(path, before);
    if (clean) return FileContent{GitMode(before.st_mode), *std::move(clean), true};
  }
  std::optional<FileContent> content = ContentBeneath(checkout, path);
  // Its time says that it was not written while it was read.
  return look(&after) ? content : std::nullopt;
}

}  // namespace

GivenFiles LookAtCheckout(const std::string& checkout, const Repository* repository,
                          const timespec& since, std::chrono::milliseconds longest,
                          const std::function<bool()>& ended) {
  GivenFiles given;
  Result<Fd> root = sys::Open(checkout, O_RDONLY | O_DIRECTORY);
  if (!root.ok()) return given;
  const Deadline deadline = Deadline::After(longest);
  bool whole = true;
  UpperVisitor visitor;
  visitor.gone = [&](const std::string& path) -> Status {
    if (deadline.passed() || (ended && ended())) return Error{Code::kTemporary, "too many files"};
    given.files.emplace(path, ContentOf(root.value().get(), repository, path, since));
    return Ok();
  };
  visitor.left_out = [&](const std::string&, const std::string&, bool lost) {
    if (lost) whole = false;
  };
  visitor.submodule = [](const std::string&) {};
  visitor.ignored = [](const std::string&) {};
  Status walked = WalkUpper({-1, root.value().get()}, repository, kEntriesMax, visitor);
  given.whole = walked.ok() && whole;
  return given;
}

BackgroundLook::BackgroundLook(const std::string& checkout, const Repository* repository,
                               const timespec& since)
    : end_(::eventfd(0, EFD_CLOEXEC)), look_([this, checkout, repository, since] {
        const Deadline least = Deadline::After(kLookMin);
        given_ = LookAtCheckout(checkout, repository, since, kLookMax, [this, &least] {
          if (!least.passed()) return false;
          Result<bool> readable = sys::WaitReadable(end_.get(), Deadline::After({}));
          return !readable.ok() || readable.value();
        });
      }) {}

void BackgroundLook::End() {
  if (end_.valid()) (void)::eventfd_write(end_.get(), 1);
  look_.Wait();
}

GivenFiles BackgroundLook::Take() {
  End();
  return std::move(given_);
}

}  // namespace change
