// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/caller_view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/sys.h"

namespace sandbox {
namespace {

constexpr size_t kPageBytes = 4096;

// The effective id alone, and of this thread alone, which is what system calls look at.
void SetEffective(long call, id_t id) { ENSURE(::syscall(call, -1, id, -1) == 0); }

// Returns the supplementary groups of this process, which do not change.
const std::vector<gid_t>& OwnGroups() {
  static const std::vector<gid_t> groups = [] {
    std::vector<gid_t> found(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
    int count = ::getgroups(static_cast<int>(found.size()), found.data());
    found.resize(static_cast<size_t>(std::max(count, 0)));
    return found;
  }();
  return groups;
}

// Sets the groups of this thread alone: the C library's setgroups() would set them for every
// thread.
void SetGroups(const gid_t* groups, size_t count) {
  ENSURE(::syscall(SYS_setgroups, count, groups) == 0);
}

std::string DescriptorPath(pid_t thread, int fd) {
  return "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(fd);
}

std::string ReadSome(pid_t thread, uint64_t address, size_t size) {
  Result<Fd> memory = sys::Open("/proc/" + std::to_string(thread) + "/mem", O_RDONLY);
  if (!memory.ok()) return {};
  std::string bytes(size, '\0');
  ssize_t n = ::pread(memory.value().get(), bytes.data(), size, static_cast<off_t>(address));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return bytes;
}

}  // namespace

ActAsAgent::ActAsAgent(const AgentIds& ids)
    : changed_(ids.others), uid_(::geteuid()), gid_(::getegid()) {
  if (!changed_) return;
  if (!OwnGroups().empty()) SetGroups(nullptr, 0);
  SetEffective(SYS_setresgid, ids.gid);
  SetEffective(SYS_setresuid, ids.uid);
}

ActAsAgent::~ActAsAgent() {
  if (!changed_) return;
  SetEffective(SYS_setresuid, uid_);
  SetEffective(SYS_setresgid, gid_);
  if (!OwnGroups().empty()) SetGroups(OwnGroups().data(), OwnGroups().size());
}

std::optional<std::string> ReadMemory(pid_t thread, uint64_t address, size_t size) {
  std::string bytes = ReadSome(thread, address, size);
  return bytes.size() == size ? std::optional(std::move(bytes)) : std::nullopt;
}

// Page by page: what follows the text may not be there.
std::optional<std::string> ReadText(pid_t thread, uint64_t address, size_t bytes_max) {
  std::string text;
  while (text.size() < bytes_max) {
    uint64_t at = address + text.size();
    std::string some = ReadSome(thread, at, kPageBytes - at % kPageBytes);
    if (some.empty()) return std::nullopt;
    size_t end = some.find('\0');
    text += some.substr(0, end);
    if (end != std::string::npos) return text;
  }
  return std::nullopt;
}

std::optional<pid_t> StatusNumber(pid_t thread, const std::string& name) {
  constexpr size_t kStatusBytesMax = 16384;
  Result<std::string> text =
      sys::ReadFile("/proc/" + std::to_string(thread) + "/status", kStatusBytesMax);
  if (!text.ok()) return std::nullopt;
  const std::string field = "\n" + name + ":\t";
  size_t at = text.value().find(field);
  if (at == std::string::npos) return std::nullopt;
  pid_t number = 0;
  const char* end = text.value().data() + text.value().size();
  if (std::from_chars(text.value().data() + at + field.size(), end, number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

std::optional<uint64_t> SocketInode(pid_t thread, int fd) {
  std::optional<std::string> name = sys::ReadLink(DescriptorPath(thread, fd));
  constexpr std::string_view kBefore = "socket:[";
  if (!name || !name->starts_with(kBefore)) return std::nullopt;
  uint64_t inode = 0;
  std::from_chars(name->data() + kBefore.size(), name->data() + name->size(), inode);
  return inode == 0 ? std::nullopt : std::optional(inode);
}

std::string SocketProtocol(pid_t thread, int fd) {
  char name[32];
  ssize_t size =
      ::getxattr(DescriptorPath(thread, fd).c_str(), "system.sockprotoname", name, sizeof name);
  if (size <= 0) return {};
  return {name, ::strnlen(name, static_cast<size_t>(size))};
}

std::optional<int> DescriptorFlags(pid_t thread, int fd) {
  constexpr size_t kInfoBytesMax = 4096;
  constexpr std::string_view kField = "flags:\t";
  std::string path = "/proc/" + std::to_string(thread) + "/fdinfo/" + std::to_string(fd);
  Result<std::string> text = sys::ReadFile(path, kInfoBytesMax);
  if (!text.ok()) return std::nullopt;
  size_t at = text.value().find(kField);
  if (at == std::string::npos) return std::nullopt;
  const char* first = text.value().data() + at + kField.size();
  int flags = 0;
  std::from_chars(first, text.value().data() + text.value().size(), flags, 8);
  return flags;
}

// Returns the descriptor in a path by which libraries say "this open file" where there is no call
// on a descriptor; nullopt for any other path.
std::optional<int> OwnDescriptor(const std::string& path) {
  for (std::string_view before : {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"}) {
    if (!path.starts_with(before)) continue;
    int fd = -1;
    const char* end = path.data() + path.size();
    auto [stop, error] = std::from_chars(path.data() + before.size(), end, fd);
    if (error == std::errc() && stop == end && fd >= 0) return fd;
  }
  return std::nullopt;
}

Result<Fd> OpenForCaller(pid_t thread, int directory, const std::string& path, bool follow) {
  if (std::optional<int> fd = OwnDescriptor(path); fd && follow) {
    return sys::Open(DescriptorPath(thread, *fd), O_PATH);
  }
  Fd base;
  if (!path.starts_with('/')) {
    std::string cwd = "/proc/" + std::to_string(thread) + "/cwd";
    base = TRY(sys::Open(directory == AT_FDCWD ? cwd : DescriptorPath(thread, directory), O_PATH));
  }
  struct open_how how {};
  how.flags = static_cast<uint64_t>(O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
  how.resolve = RESOLVE_NO_MAGICLINKS;
  long raw =
      ::syscall(SYS_openat2, base.valid() ? base.get() : AT_FDCWD, path.c_str(), &how, sizeof how);
  if (raw < 0) return Errno("openat2");
  return Fd(static_cast<int>(raw));
}

bool IsInAny(const std::string& path, const std::vector<std::string>& directories) {
  return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
    return path == directory || path.starts_with(directory + "/");
  });
}

std::string PathOf(int fd) {
  return sys::ReadLink("/proc/self/fd/" + std::to_string(fd)).value_or("");
}

}  // namespace sandbox
