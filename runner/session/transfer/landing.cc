// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/landing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"

namespace session {
namespace {

// mkdir -p, beneath `root`.
Result<Fd> MakeDirectories(int root, const std::string& path) {
  Result<Fd> there = sys::OpenInRoot(root, path.empty() ? "/" : path, O_PATH | O_DIRECTORY);
  if (there.ok() || !sys::IsAbsent(there.error()) || path.empty()) return there;
  size_t slash = path.rfind('/');
  Fd above = TRY(MakeDirectories(root, path.substr(0, slash)));
  std::string leaf = path.substr(slash + 1);
  if (::mkdirat(above.get(), leaf.c_str(), 0755) != 0) return Errno("mkdir " + path);
  return sys::OpenAt(above.get(), leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

Result<Landing> FindLanding(int root, const std::string& path, const std::string& name,
                            const std::string& shown) {
  std::string clean = path;
  while (clean.ends_with('/')) clean.pop_back();
  bool directory = clean.size() < path.size();
  for (std::string_view end : {"/.", "/.."}) directory = directory || clean.ends_with(end);
  if (!directory) {
    directory = sys::OpenInRoot(root, clean, O_PATH | O_DIRECTORY).ok();
  }
  Landing landing;
  if (directory) {
    landing.parent = TRY(MakeDirectories(root, clean).Context(shown));
    landing.leaf = name;
  } else {
    size_t slash = clean.rfind('/');
    landing.parent = TRY(MakeDirectories(root, clean.substr(0, slash)).Context(shown));
    landing.leaf = clean.substr(slash + 1);
  }
  if (landing.leaf.empty() || landing.leaf == "." || landing.leaf == "..") {
    return Error{Code::kUsage, shown + ": the target does not end with a file name"};
  }
  return landing;
}

Result<Fd> OpenSource(int root, const std::string& path, const std::string& shown) {
  auto opened_with = [&](int flags) -> Result<Fd> {
    Result<Fd> opened = sys::OpenInRoot(root, path, flags);
    if (!opened.ok()) return Errno(shown, opened.error().os_error);
    return opened;
  };
  Fd looked = TRY(opened_with(O_PATH));
  struct stat st {};
  if (::fstat(looked.get(), &st) != 0) return Errno("fstat " + shown);
  if (S_ISDIR(st.st_mode)) return opened_with(O_RDONLY | O_DIRECTORY);
  if (!S_ISREG(st.st_mode)) {
    return Error{Code::kInvalid, shown + " is neither a file nor a directory"};
  }
  return opened_with(O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

}  // namespace session
