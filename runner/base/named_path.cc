// SPDX-License-Identifier: Apache-2.0
#include "base/named_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <filesystem>
#include <system_error>

#include "base/sys.h"

namespace {

Error LinkNotFollowed(const std::string& path) {
  return Error{Code::kInvalid, path + ": a symbolic link in a checkout is not followed"};
}

Result<Fd> OpenNamed(const std::string& path, int flags) {
  std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  if (!inside) return sys::Open(path, flags);
  Fd top = TRY(sys::Open(inside->top, O_RDONLY | O_DIRECTORY));
  Result<Fd> opened = sys::OpenBeneath(top.get(), inside->below, flags | O_NONBLOCK);
  if (opened.ok()) return opened;
  if (opened.error().os_error == ELOOP) return LinkNotFollowed(path);
  return Errno(path, opened.error().os_error);
}

Result<Fd> OpenNotOfProc(const std::string& path, int flags) {
  Fd file = TRY(OpenNamed(path, flags));
  struct statfs system {};
  if (::fstatfs(file.get(), &system) != 0) return Errno(path);
  if (system.f_type != PROC_SUPER_MAGIC) return file;
  return Error{Code::kInvalid, path + ": a file of /proc is not read"};
}

}  // namespace

std::optional<CheckoutPath> FindCheckoutPath(const std::string& path) {
  std::error_code failed;
  std::string place = std::filesystem::absolute(path, failed).lexically_normal().string();
  if (place.ends_with('/')) place.pop_back();
  for (size_t slash = place.find('/', 1);; slash = place.find('/', slash + 1)) {
    std::string top = place.substr(0, slash);
    const bool whole = slash == std::string::npos;
    if (sys::Exists(top + "/.git")) return CheckoutPath{top, whole ? "." : place.substr(slash + 1)};
    if (whole) return std::nullopt;
  }
}

std::optional<std::string> FindLinkOnPath(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    struct stat st {};
    if (::lstat(prefix.c_str(), &st) == 0 && S_ISLNK(st.st_mode)) return prefix;
    if (slash == std::string::npos) return std::nullopt;
  }
}

std::string FindRepositoryFile(const std::string& path) {
  constexpr size_t kDirectoriesMax = 64;  // Above this one.
  for (std::string directory; directory.size() < 3 * kDirectoriesMax; directory += "../") {
    if (sys::Exists(directory + path)) return directory + path;
    if (sys::Exists(directory + ".git")) break;
  }
  return {};
}

Result<std::string> ReadNamedFile(const std::string& path, size_t bytes_max) {
  Fd file = TRY(OpenNotOfProc(path, O_RDONLY));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return Errno(path);
  // It was opened without waiting for one who writes.
  if (S_ISFIFO(about.st_mode) && FindCheckoutPath(path)) {
    return Error{Code::kInvalid, path + ": a named pipe in a checkout is not read"};
  }
  return sys::ReadAll(file.get(), bytes_max).Context(path);
}

Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_max) {
  Fd file = TRY(OpenNotOfProc(path, O_RDONLY | O_NONBLOCK));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return Errno(path);
  if (!S_ISREG(about.st_mode)) return Error{Code::kInvalid, path + ": not a regular file"};
  return sys::ReadAll(file.get(), bytes_max).Context(path);
}

Result<std::string> ResolveNamedDirectory(const std::string& path) {
  std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  if (!inside) return sys::RealPath(path);
  TRY(OpenNamed(path, O_RDONLY | O_DIRECTORY));
  return sys::RealPath(inside->top + "/" + inside->below);
}

Result<Fd> MakeNamedDirectory(const std::string& path, mode_t mode) {
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
  std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  if (!inside) {
    TRY(sys::MakeDirectories(path, mode));
    return sys::Open(path, kDirectory);
  }
  Fd at = TRY(sys::Open(inside->top, kDirectory));
  for (const std::filesystem::path& part : std::filesystem::path(inside->below)) {
    if (::mkdirat(at.get(), part.c_str(), mode) != 0 && errno != EEXIST) return Errno(path);
    struct stat st {};
    if (::fstatat(at.get(), part.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
      return LinkNotFollowed(path);
    }
    at = TRY(sys::OpenAt(at.get(), part.string(), kDirectory | O_NOFOLLOW));
  }
  return at;
}
