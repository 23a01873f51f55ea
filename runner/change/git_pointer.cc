// SPDX-License-Identifier: Apache-2.0
#include "change/git_pointer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/sys.h"

namespace change {
namespace {

constexpr size_t kPointerBytesMax = 1 << 16;

}  // namespace

Result<std::string> ReadGitText(const std::string& path, size_t bytes_max) {
  Fd file = TRY(sys::Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return Errno("fstat");
  if (!S_ISREG(facts.st_mode)) return Error{Code::kInvalid, path + " is not a regular file"};
  return sys::ReadAll(file.get(), bytes_max);
}

std::optional<std::string> ReadGitPointer(const std::string& file, std::string_view prefix,
                                          const std::string& base) {
  Result<std::string> text = ReadGitText(file, kPointerBytesMax);
  if (!text.ok() || !text.value().starts_with(prefix)) return std::nullopt;
  std::string path = text.value().substr(prefix.size());
  path.resize(std::min(path.find('\n'), path.size()));
  if (path.empty() || path.find('\0') != std::string::npos) return std::nullopt;
  Result<std::string> real = sys::RealPath(path.front() == '/' ? path : base + "/" + path);
  if (!real.ok()) return std::nullopt;
  return std::move(real).value();
}

std::optional<std::string> GitDirectoryOf(const std::string& top) {
  const std::string git = top + "/.git";
  struct stat facts {};
  if (::lstat(git.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) return git;
  return ReadGitPointer(git, "gitdir: ", top);
}

}  // namespace change
