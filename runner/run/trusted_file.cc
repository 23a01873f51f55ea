// SPDX-License-Identifier: Apache-2.0
#include "run/trusted_file.h"

#include <fcntl.h>

#include "base/sys.h"

namespace run {

Result<TrustedFile> ReadTrustedFile(const change::Repository* repository,
                                    const std::string& checkout, const TrustedRef& ref,
                                    const std::string& path, size_t bytes_max) {
  TrustedFile result;
  if (ref.ref == "worktree") {
    Fd directory = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY));
    Result<Fd> file = sys::OpenBeneath(directory.get(), path, O_RDONLY);
    if (!file.ok() && file.error().code == Code::kNotFound) return result;
    if (!file.ok()) return std::move(file).error();
    result.text = TRY(sys::ReadAll(file.value().get(), bytes_max));
    return result;
  }
  if (repository == nullptr) return result;
  Result<std::string> commit = repository->ResolveCommit(ref.ref);
  // A repository without a commit has no such file either; a ref that somebody named must exist.
  bool unborn = !ref.named && ref.ref == "HEAD";
  if (!commit.ok() && commit.error().code == Code::kNotFound && unborn) return result;
  result.commit = TRY(std::move(commit));
  result.text = TRY(repository->ReadAtRef(ref.ref, path, bytes_max));
  return result;
}

}  // namespace run
