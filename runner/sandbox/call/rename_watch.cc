// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/rename_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/call/caller_view.h"
#include "sandbox/call/directory_lift.h"

namespace sandbox {
namespace {

constexpr size_t kRequestBytesMax = PATH_MAX + 256;
constexpr size_t kSentMax = 256;
// The time for a directory that is being moved when the sandbox ends.
constexpr std::chrono::seconds kEndTime{5};

struct RenameCall {
  int old_directory = AT_FDCWD;
  uint64_t old_path = 0;
  int new_directory = AT_FDCWD;
  uint64_t new_path = 0;
  bool exchanges = false;
};

RenameCall ParseRename(const Call& call) {
#ifdef SYS_rename
  if (call.number == SYS_rename) {
    return {AT_FDCWD, call.arguments[0], AT_FDCWD, call.arguments[1], false};
  }
#endif
  bool exchanges = call.number == SYS_renameat2 && (call.arguments[4] & RENAME_EXCHANGE) != 0;
  return {call.Number(0), call.arguments[1], call.Number(2), call.arguments[3], exchanges};
}

std::optional<CalledPath> ReadPath(pid_t thread, int directory, uint64_t address) {
  std::optional<std::string> text = ReadText(thread, address, PATH_MAX);
  if (!text || text->empty()) return std::nullopt;
  std::string process = "/proc/" + std::to_string(thread);
  std::string base = text->front() == '/'    ? process + "/root"
                     : directory == AT_FDCWD ? process + "/cwd"
                                             : process + "/fd/" + std::to_string(directory);
  Result<Fd> opened = sys::Open(base, O_PATH | O_DIRECTORY);
  if (!opened.ok()) return std::nullopt;
  size_t begin = text->find_first_not_of('/');
  return CalledPath{std::move(opened).value(),
                    begin == std::string::npos ? "." : text->substr(begin)};
}

// Opens what stands there, O_PATH, if no link is on the way. ELOOP if one is.
Result<Fd> OpenWithoutLinks(const CalledPath& path, const std::string& rest) {
  struct open_how how {};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long raw = ::syscall(SYS_openat2, path.base.get(), rest.c_str(), &how, sizeof how);
  if (raw < 0) return Errno("openat2");
  return Fd(static_cast<int>(raw));
}

// Returns the device of what stands at `path` if that is a directory of an overlay; 0 if it is
// something else, or there is nothing; nullopt if a link is on the way.
std::optional<dev_t> OverlayOf(const CalledPath& path) {
  Result<Fd> found = OpenWithoutLinks(path, path.rest);
  if (!found.ok()) return found.error().os_error == ELOOP ? std::nullopt : std::optional<dev_t>(0);
  struct stat st {};
  struct statfs fs {};
  bool overlay = ::fstat(found.value().get(), &st) == 0 && S_ISDIR(st.st_mode) &&
                 ::fstatfs(found.value().get(), &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
  return overlay ? st.st_dev : 0;
}

// Returns whether the directory that `path` lies in is known to be of another file system than
// `device`.
bool IsElsewhere(const CalledPath& path, dev_t device) {
  std::string rest = path.rest;
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  size_t slash = rest.rfind('/');
  Result<Fd> above =
      OpenWithoutLinks(path, slash == std::string::npos ? "." : rest.substr(0, slash + 1));
  struct stat st {};
  return above.ok() && ::fstat(above.value().get(), &st) == 0 && st.st_dev != device;
}

// Moves directories, in the process inside, until the supervisor closes its end.
[[noreturn]] void MoveDirectories(const Fd& requests, const CallListener& listener) {
  for (;;) {
    Result<sys::Message> message =
        sys::ReceiveMessage(requests.get(), kRequestBytesMax, Deadline::Never());
    uint64_t id = 0;
    bool last = false;
    std::string path;
    if (!message.ok() || !wire::Read(message.value().bytes, id, last, path)) ::_exit(0);
    (void)LiftDirectory(message.value().fd.get(), path);  // The call tells the caller.
    if (last) (void)listener.Continue(id);
  }
}

}  // namespace

std::vector<int> RenameCalls() {
  std::vector<int> calls = {SYS_renameat, SYS_renameat2};
#ifdef SYS_rename
  calls.push_back(SYS_rename);
#endif
  return calls;
}

RenameWatch::RenameWatch(RenameWatch&& other) noexcept
    : mover_(std::exchange(other.mover_, -1)),
      requests_(std::move(other.requests_)),
      sent_(std::move(other.sent_)) {}

RenameWatch& RenameWatch::operator=(RenameWatch&& other) noexcept {
  std::swap(mover_, other.mover_);
  std::swap(requests_, other.requests_);
  std::swap(sent_, other.sent_);
  return *this;
}

void RenameWatch::End() {
  requests_.Close();
  if (mover_ < 0) return;
  Result<Fd> process = sys::PidfdOpen(mover_);
  if (process.ok()) (void)sys::WaitReadable(process.value().get(), Deadline::After(kEndTime));
  (void)::kill(mover_, SIGKILL);  // This process's child: the number is not given out again.
  while (::waitpid(mover_, nullptr, 0) < 0 && errno == EINTR) {
  }
  mover_ = -1;
  sent_.clear();
}

Status RenameWatch::StartMover(const CallListener& listener, const MoverPlace& place) {
  auto [ours, theirs] = TRY(sys::SocketPair());
  // A caller with hundreds of threads fills it; the supervisor waits for none of them.
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return Errno("fcntl");
  Fd answers(::fcntl(listener.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!answers.valid()) return Errno("fcntl");
  pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) {
    if (!place.enter({&theirs, &answers}).ok()) ::_exit(1);
    MoveDirectories(theirs, CallListener(std::move(answers)));
  }
  mover_ = pid;
  requests_ = std::move(ours);
  return place.attach(pid);
}

void RenameWatch::ReleaseAbandoned(const CallListener& listener) {
  if (mover_ < 0 || ::waitpid(mover_, nullptr, WNOHANG) != mover_) return;
  mover_ = -1;
  requests_.Close();
  for (uint64_t id : sent_) (void)listener.Continue(id);
  sent_.clear();
}

bool RenameWatch::Send(const CallListener& listener, const Call& call, const MoverPlace& place,
                       const CalledPath& path, bool last) {
  if (mover_ < 0 && !StartMover(listener, place).ok()) {
    End();
    return false;
  }
  if (sent_.size() == kSentMax) {
    std::erase_if(sent_, [&](uint64_t id) { return !listener.Waits(id); });
  }
  if (sent_.size() == kSentMax) return false;
  if (!sys::SendMessage(requests_.get(), wire::Write(call.id, last, path.rest), path.base.get())
           .ok())
    return false;
  if (last) sent_.push_back(call.id);
  return true;
}

// Returns false if the call goes on as it is.
bool RenameWatch::Prepare(const CallListener& listener, const Call& call, const MoverPlace& place) {
  RenameCall wanted = ParseRename(call);
  std::optional<CalledPath> from = ReadPath(call.thread, wanted.old_directory, wanted.old_path);
  // The opened directories are the caller's, if that still waits.
  if (!from || !listener.Waits(call.id)) return false;
  std::optional<dev_t> device = OverlayOf(*from);
  if (device == dev_t{0} && !wanted.exchanges) return false;  // Most calls rename a file.
  std::optional<CalledPath> to = ReadPath(call.thread, wanted.new_directory, wanted.new_path);
  if (!to || !listener.Waits(call.id)) return false;
  if (wanted.exchanges && OverlayOf(*to) != dev_t{0}) {
    return Send(listener, call, place, *from, false) && Send(listener, call, place, *to, true);
  }
  if (device && (*device == 0 || IsElsewhere(*to, *device))) return false;
  return Send(listener, call, place, *from, true);
}

void RenameWatch::Take(const CallListener& listener, const Call& call, const MoverPlace& place) {
  ReleaseAbandoned(listener);
  if (!Prepare(listener, call, place)) (void)listener.Continue(call.id);
}

}  // namespace sandbox
