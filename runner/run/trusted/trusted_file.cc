// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/trusted_file.h"

#include <fcntl.h>

#include <utility>

#include "base/sys.h"

namespace run {
namespace {

Result<std::optional<std::string>> ReadInWorktree(const std::string& top, const std::string& path,
                                                  size_t bytes_max) {
  Fd directory = TRY(sys::Open(top, O_RDONLY | O_DIRECTORY));
  Result<Fd> file = sys::OpenBeneath(directory.get(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok() && file.error().code == Code::kNotFound) return std::optional<std::string>();
  if (!file.ok()) return std::move(file).error();
  std::string text = TRY(sys::ReadAll(file.value().get(), bytes_max));
  return std::optional<std::string>(std::move(text));
}

}  // namespace

Result<TrustedFile> ReadTrustedFile(const change::Repository* repository,
                                    const std::string& checkout, const TrustedRef& ref,
                                    const std::string& path, size_t bytes_max) {
  TrustedFile result;
  const std::string& top = repository != nullptr ? repository->top() : checkout;
  if (ref.ref == kWorktree) {
    result.text = TRY(ReadInWorktree(top, path, bytes_max).Context("reading " + path));
    return result;
  }
  if (repository != nullptr && !(ref.assumed && repository->unborn())) {
    Result<std::string> commit = repository->ResolveCommit(ref.ref);
    if (!commit.ok() && commit.error().code == Code::kNotFound && !ref.fetch.empty()) {
      return Error{Code::kNotFound, std::move(commit).error().what, ref.fetch};
    }
    result.commit = TRY(std::move(commit));
    result.text = TRY(repository->ReadAtRef(ref.ref, path, bytes_max));
  }
  if (!ref.assumed) return result;
  // One that cannot be read is not the text at HEAD either.
  Result<std::optional<std::string>> worktree = ReadInWorktree(top, path, bytes_max);
  result.worktree_differs = !worktree.ok() || (worktree.value() && worktree.value() != result.text);
  return result;
}

Status CheckSpelling(const change::Repository* repository, const std::string& checkout,
                     const TrustedRef& ref, const std::string& path) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  // Most often there is not even the directory: one look instead of four.
  Result<TrustedFile> directory =
      ReadTrustedFile(repository, checkout, ref, path.substr(0, path.rfind('/')), kBytesMax);
  if (directory.ok() && !directory.value().text) return Ok();
  const std::string stem = path.substr(0, path.rfind('.'));
  for (const std::string& other : {stem + ".yaml", stem + ".YML", stem + ".YAML", stem + ".json"}) {
    Result<TrustedFile> file = ReadTrustedFile(repository, checkout, ref, other, kBytesMax);
    // One that cannot be read is there all the same.
    if (file.ok() && !file.value().text) continue;
    return Error{Code::kInvalid, other + " is not read: its name has to be " + path,
                 "git mv " + other + " " + path};
  }
  return Ok();
}

}  // namespace run
