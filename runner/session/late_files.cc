// SPDX-License-Identifier: Apache-2.0
#include "session/late_files.h"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/sys.h"
#include "run/shown/git_files.h"
#include "session/inside_files.h"

namespace session {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr mode_t kFileMode = 0644;

// Returns whether the sandbox sees the checkout's own file there, and it is not as wanted.
bool IsToBeHidden(const sandbox::Sandbox& sandbox, const std::string& checkout,
                  const sandbox::WorkspaceFile& file) {
  Result<Fd> own = sys::OpenBeneath(sandbox.upper(), file.path, O_PATH | O_NOFOLLOW);
  if (own.ok() || !sys::IsAbsent(own.error())) return false;
  Result<std::string> now = sys::ReadBeneath(checkout, file.path, kFileBytesMax);
  return file.gone || !now.ok() || now.value() != file.content.get();
}

}  // namespace

bool LateFiles::MayHave(const std::string& checkout) const {
  Result<Fd> opened = sys::Open(checkout, O_PATH | O_DIRECTORY);
  if (!opened.ok() || seen_.empty()) return true;
  return std::any_of(seen_.begin(), seen_.end(), [&](const run::Seen& seen) {
    const timespec now = run::ChangeOf(opened.value().get(), seen.path);
    return (now.tv_sec == 0 && now.tv_nsec == 0) || now.tv_sec != seen.changed.tv_sec ||
           now.tv_nsec != seen.changed.tv_nsec;
  });
}

Result<std::vector<sandbox::WorkspaceFile>> LateFiles::Hide(const sandbox::Sandbox& sandbox,
                                                            const run::Checkout& checked_out,
                                                            const std::string& report) {
  const std::string& checkout = checked_out.path;
  std::vector<run::Seen> seen;
  const run::LeftFiles left = TRY(run::FindLeftFiles(checkout, report, &seen));
  const run::GitFiles git = TRY(run::FindGitFiles(checkout, left.repositories, &seen));
  std::set<std::string> paths(left.credentials.begin(), left.credentials.end());
  paths.insert(git.included.begin(), git.included.end());
  std::vector<sandbox::WorkspaceFile> found =
      run::WithholdFiles(checked_out.git(), checkout, {paths.begin(), paths.end()});
  found.insert(found.end(), git.in_checkout.begin(), git.in_checkout.end());
  found.insert(found.end(), git.nested.begin(), git.nested.end());
  std::erase_if(found, [&](const auto& file) { return !IsToBeHidden(sandbox, checkout, file); });
  std::vector<InsideFile> written;
  for (const sandbox::WorkspaceFile& file : found) {
    InsideFile inside{file.path, std::nullopt, kFileMode, false};
    if (!file.gone) inside.text = file.content.get();
    written.push_back(std::move(inside));
  }
  for (const sandbox::WorkspaceFile& file : git.outside) {
    Result<std::string> now = sys::ReadFile(file.path, kFileBytesMax);
    if (now.ok() ? now.value() == file.content.get() : sys::IsAbsent(now.error())) continue;
    InsideFile inside{file.path, file.content.get(), kFileMode, false};
    if (now.ok()) inside.seen = std::move(now).value();
    written.push_back(std::move(inside));
  }
  TRY(WriteInside(sandbox, written));
  seen_ = std::move(seen);
  return found;
}

}  // namespace session
