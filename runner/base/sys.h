// SPDX-License-Identifier: Apache-2.0
// System calls as Results. Every descriptor is close-on-exec from the start: descriptors are passed
// to a child explicitly, never inherited.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/secret.h"

namespace sys {

// Returns 32 random hexadecimal digits from the kernel: a name that cannot be guessed or taken.
std::string RandomHex();

Result<Fd> Open(const std::string& path, int flags, mode_t mode = 0);
// `dir` may be AT_FDCWD.
Result<Fd> OpenAt(int dir, const std::string& path, int flags, mode_t mode = 0);
// Opens a path that came from outside: never leaves `dir`, follows no symbolic link at all
// (openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS).
Result<Fd> OpenBeneath(int dir, const std::string& path, int flags, mode_t mode = 0);
// Returns whether the error means that nothing is there, also because a parent is a file or a link.
bool IsAbsent(const Error& error);

// Opens like OpenBeneath, and fails where `name` is or leads through a mount point
// (RESOLVE_NO_XDEV).
Result<Fd> OpenUnmounted(int dir, const std::string& name, int flags);

// Resolves `path` as a process would whose root is `root`, absolute links too; at most 40 of them
// (openat2 with RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS).
Result<Fd> OpenInRoot(int root, const std::string& path, int flags);

// Returns {read end, write end}.
Result<std::pair<Fd, Fd>> Pipe();
// Returns a connected pair of SOCK_SEQPACKET Unix sockets: messages keep their bounds.
Result<std::pair<Fd, Fd>> SocketPair();
Result<Fd> PidfdOpen(pid_t pid);

// Reads everything, at most `bytes_max`; more is an Error of kInvalid that names the bound.
Result<std::string> ReadAll(int fd, size_t bytes_max);
Result<std::string> ReadFile(const std::string& path, size_t bytes_max);
// Does the same for `path` in `directory`, as OpenBeneath; a pipe without a writer is empty.
Result<std::string> ReadBeneath(const std::string& directory, const std::string& path,
                                size_t bytes_max);
// Writes all of it, retrying short writes.
Status WriteAll(int fd, std::string_view bytes);
// Writes what the reader of a pipe or terminal takes until `deadline`, in pieces that do not block
// when poll(2) says that there is room (PIPE_BUF, pipe(7)). Gives how many bytes were written.
Result<size_t> WriteWithin(int fd, std::string_view bytes, Deadline deadline);
Status WriteFile(const std::string& path, std::string_view bytes, mode_t mode = 0644);
// Makes directories as `mkdir -p` does.
Status MakeDirectories(const std::string& path, mode_t mode = 0755);
// Returns the canonical absolute path, every symbolic link resolved.
Result<std::string> RealPath(const std::string& path);
std::optional<std::string> ReadLink(const std::string& path);
// `dir` may be AT_FDCWD.
std::optional<std::string> ReadLinkAt(int dir, const std::string& path);
// Returns the present time by which files in `directory` are changed (their ctime). On a disk of
// this machine it is the clock's, up to a tick (10 ms) later than that of a file which is changed
// now. Elsewhere, as on NFS, it is that of a new file, which is gone again; the clock's if none can
// be made.
timespec FileTime(const std::string& directory);
// Returns whether it is there, be it a link that leads nowhere.
bool Exists(const std::string& path);
bool ExistsAt(int dir, const std::string& path);

// One message and at most one descriptor over a Unix socket. A closed peer gives an empty message.
struct Message {
  std::string bytes;
  Fd fd;
};
Status SendMessage(int socket, std::string_view bytes, int fd_or_minus_one = -1);
Result<Message> ReceiveMessage(int socket, size_t bytes_max, Deadline deadline);

// Waits until `fd` is readable (or closed). Returns false if the deadline passed first.
Result<bool> WaitReadable(int fd, Deadline deadline);

// Returns a variable of this process's environment. Only `cli/` and `run/` may base a decision on
// one.
std::optional<std::string> Environment(const std::string& name);
// Returns the same as a Secret, its value overwritten in the environment block; empty if it is not
// set.
Secret EnvironmentSecret(const std::string& name);
// Overwrites every byte of this process's environment block in place, so that neither a clone's
// memory nor /proc/PID/environ shows what CI put there. Environment() finds nothing afterwards.
void WipeEnvironment();

// Does the same for the argument block: /proc/PID/cmdline shows nothing of it afterwards.
void WipeArguments();

// Opens /dev/null in the place of every standard stream that is closed, so that no other descriptor
// can come to stand there.
Status FillStandardStreams();

// Closes every other descriptor of this process.
void CloseAllExcept(const std::vector<int>& keep);

}  // namespace sys
