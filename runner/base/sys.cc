// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <climits>
#include <sstream>

extern char** environ;

namespace sys {

std::string RandomHex() {
  std::array<unsigned char, 16> bytes{};
  ENSURE(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::string digits;
  for (unsigned char byte : bytes) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

Result<Fd> Open(const std::string& path, int flags, mode_t mode) {
  return OpenAt(AT_FDCWD, path, flags, mode);
}

Result<Fd> OpenAt(int dir, const std::string& path, int flags, mode_t mode) {
  int raw = ::openat(dir, path.c_str(), flags | O_CLOEXEC, mode);
  if (raw < 0) return Errno("openat " + path);
  return Fd(raw);
}

namespace {

// A `..` beneath a directory is refused (EAGAIN) while anything is renamed or mounted on the
// machine, since it might lead out; openat2(2) leaves it to the caller to ask again.
constexpr int kResolveTriesMax = 1000;

Result<Fd> OpenResolved(int dir, const std::string& path, int flags, mode_t mode,
                        uint64_t resolve) {
  struct open_how how {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  long raw = -1;
  for (int tries = 0; raw < 0 && tries < kResolveTriesMax; ++tries) {
    raw = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
    if (raw < 0 && errno != EAGAIN) break;
  }
  if (raw < 0) return Errno("openat2 " + path);
  return Fd(static_cast<int>(raw));
}

}  // namespace

Result<Fd> OpenBeneath(int dir, const std::string& path, int flags, mode_t mode) {
  return OpenResolved(dir, path, flags, mode,
                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

Result<Fd> OpenUnmounted(int dir, const std::string& name, int flags) {
  return OpenResolved(
      dir, name, flags, 0,
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

bool IsAbsent(const Error& error) {
  return error.os_error == ENOENT || error.os_error == ENOTDIR || error.os_error == ELOOP;
}

Result<Fd> OpenInRoot(int root, const std::string& path, int flags) {
  return OpenResolved(root, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<std::pair<Fd, Fd>> Pipe() {
  int raw[2];
  if (::pipe2(raw, O_CLOEXEC) != 0) return Errno("pipe2");
  return std::pair(Fd(raw[0]), Fd(raw[1]));
}

Result<std::pair<Fd, Fd>> SocketPair() {
  int raw[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, raw) != 0) return Errno("socketpair");
  return std::pair(Fd(raw[0]), Fd(raw[1]));
}

Result<Fd> PidfdOpen(pid_t pid) {
  long raw = ::syscall(SYS_pidfd_open, pid, 0);
  if (raw < 0) return Errno("pidfd_open");
  return Fd(static_cast<int>(raw));
}

Result<std::string> ReadAll(int fd, size_t bytes_max) {
  std::string bytes;
  char chunk[16384];
  for (;;) {
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno("read");
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(n) > bytes_max) {
      return Error{Code::kInvalid, "larger than " + std::to_string(bytes_max) + " bytes"};
    }
    struct stat facts {};
    if (bytes.empty() && static_cast<size_t>(n) == sizeof chunk && ::fstat(fd, &facts) == 0 &&
        S_ISREG(facts.st_mode)) {
      bytes.reserve(std::min(bytes_max, static_cast<size_t>(facts.st_size)));
    }
    bytes.append(chunk, static_cast<size_t>(n));
  }
}

Result<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  Fd fd = TRY(Open(path, O_RDONLY));
  return ReadAll(fd.get(), bytes_max).Context(path);
}

Result<std::string> ReadBeneath(const std::string& directory, const std::string& path,
                                size_t bytes_max) {
  Fd top = TRY(Open(directory, O_RDONLY | O_DIRECTORY));
  Fd file = TRY(OpenBeneath(top.get(), path, O_RDONLY | O_NONBLOCK));
  return ReadAll(file.get(), bytes_max).Context(path);
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Ok();
}

Result<size_t> WriteWithin(int fd, std::string_view bytes, Deadline deadline) {
  size_t written = 0;
  while (written < bytes.size()) {
    pollfd wait{fd, POLLOUT, 0};
    int ready = ::poll(&wait, 1, deadline.poll_ms());
    if (ready < 0 && errno != EINTR && errno != ENOMEM) return Errno("poll");
    if (ready == 0 || (ready < 0 && deadline.passed())) break;
    if (ready < 0) continue;  // A shortage of memory passes; what was said is not lost for it.
    size_t piece = std::min<size_t>(bytes.size() - written, PIPE_BUF);
    ssize_t n = ::write(fd, bytes.data() + written, piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;  // A terminal with less room than that.
    if (n < 0) return Errno("write");
    written += static_cast<size_t>(n);
  }
  return written;
}

Status WriteFile(const std::string& path, std::string_view bytes, mode_t mode) {
  Fd fd = TRY(Open(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  return WriteAll(fd.get(), bytes).Context("writing " + path);
}

Status MakeDirectories(const std::string& path, mode_t mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (::mkdir(prefix.c_str(), mode) != 0 && errno != EEXIST) return Errno("mkdir " + prefix);
    if (slash == std::string::npos) return Ok();
  }
}

Result<std::string> RealPath(const std::string& path) {
  char* raw = ::realpath(path.c_str(), nullptr);
  if (raw == nullptr) return Errno(path);
  std::string real = raw;
  ::free(raw);
  return real;
}

std::optional<std::string> ReadLink(const std::string& path) { return ReadLinkAt(AT_FDCWD, path); }

std::optional<std::string> ReadLinkAt(int dir, const std::string& path) {
  char target[PATH_MAX];
  ssize_t n = ::readlinkat(dir, path.c_str(), target, sizeof target);
  if (n < 0) return std::nullopt;
  return std::string(target, static_cast<size_t>(n));
}

namespace {

// Returns whether the file system of `directory` is known to stamp files by this machine's clock.
bool KeepsOwnTime(const std::string& directory) {
  constexpr auto kLocal = std::to_array<unsigned long>(
      {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC,
       RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC});
  struct statfs system {};
  return ::statfs(directory.c_str(), &system) == 0 &&
         std::find(kLocal.begin(), kLocal.end(), static_cast<unsigned long>(system.f_type)) !=
             kLocal.end();
}

// Returns the time of a new file in `directory`, which is gone again.
Result<timespec> TimeOfNewFile(const std::string& directory) {
  std::string path = directory + "/.agentic-ci-XXXXXX";
  Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) return Errno("mkostemp");
  if (::unlink(path.c_str()) != 0) return Errno("unlink");
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return Errno("fstat");
  return st.st_ctim;
}

}  // namespace

timespec FileTime(const std::string& directory) {
  if (!KeepsOwnTime(directory)) {
    Result<timespec> theirs = TimeOfNewFile(directory);
    if (theirs.ok()) return theirs.value();
  }
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

bool Exists(const std::string& path) { return ExistsAt(AT_FDCWD, path); }

bool ExistsAt(int dir, const std::string& path) {
  struct stat st {};
  return ::fstatat(dir, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

Status SendMessage(int socket, std::string_view bytes, int fd) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    ::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return Errno("sendmsg");
  }
  return Ok();
}

Result<Message> ReceiveMessage(int socket, size_t bytes_max, Deadline deadline) {
  if (!TRY(WaitReadable(socket, deadline))) {
    return Error{Code::kIo, "no response within the time limit"};
  }
  Message message;
  message.bytes.resize(bytes_max);
  iovec part{message.bytes.data(), bytes_max};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int));  // CMSG_SPACE() has room for two.
  ssize_t n;
  while ((n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return Errno("recvmsg");
  }
  for (cmsghdr* part_header = CMSG_FIRSTHDR(&header); part_header != nullptr;
       part_header = CMSG_NXTHDR(&header, part_header)) {
    if (part_header->cmsg_level == SOL_SOCKET && part_header->cmsg_type == SCM_RIGHTS) {
      int raw;
      ::memcpy(&raw, CMSG_DATA(part_header), sizeof raw);
      message.fd = Fd(raw);
    }
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) return Error{Code::kBug, "message truncated"};
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return Error{Code::kInvalid, "a message with more than one descriptor"};
  }
  message.bytes.resize(static_cast<size_t>(n));
  return message;
}

Result<bool> WaitReadable(int fd, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    int n = ::poll(&entry, 1, deadline.poll_ms());
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return Errno("poll");
  }
}

std::optional<std::string> Environment(const std::string& name) {
  const char* value = ::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Secret EnvironmentSecret(const std::string& name) {
  char* value = ::getenv(name.c_str());
  if (value == nullptr) return Secret();
  Secret secret{std::string_view(value)};
  ::explicit_bzero(value, ::strlen(value));
  return secret;
}

void WipeEnvironment() {
  if (environ == nullptr) return;
  for (char** entry = environ; *entry != nullptr; ++entry)
    ::explicit_bzero(*entry, ::strlen(*entry));
  ::clearenv();
}

void WipeArguments() {
  // Fields 48 and 49 of proc(5)'s stat, counted from behind the command name in parentheses.
  constexpr int kArgumentStart = 48;
  Result<std::string> stat = ReadFile("/proc/self/stat", 4096);
  if (!stat.ok()) return;
  std::istringstream fields(stat.value().substr(stat.value().rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < kArgumentStart; ++field) fields >> skipped;
  uintptr_t start = 0;
  uintptr_t end = 0;
  if (fields >> start >> end && start != 0 && start < end) {
    ::explicit_bzero(reinterpret_cast<void*>(start), end - start);
  }
}

Status FillStandardStreams() {
  for (;;) {
    Fd fd = TRY(Open("/dev/null", O_RDWR));
    if (fd.get() > STDERR_FILENO) return Ok();
    (void)::fcntl(fd.get(), F_SETFD, 0);
    (void)fd.Take();
  }
}

void CloseAllExcept(const std::vector<int>& keep) {
  std::vector<int> sorted = keep;
  std::sort(sorted.begin(), sorted.end());
  unsigned next = 0;
  for (int fd : sorted) {
    if (fd < 0) continue;
    auto held = static_cast<unsigned>(fd);
    if (held > next) (void)::syscall(SYS_close_range, next, held - 1, 0);
    next = held + 1;
  }
  (void)::syscall(SYS_close_range, next, ~0U, 0);
}

}  // namespace sys
