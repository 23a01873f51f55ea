// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/unpack_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/sys.h"
#include "base/user_namespace.h"
#include "image/unpack/unpack_child.h"

namespace image {
namespace {

// Not the mount namespace: the process takes one itself, standing in its directory.
constexpr unsigned long kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
constexpr int kPipeBytes = 1 << 20;

// Like fork, into the namespaces. This process has other threads: after a raw clone(2) the child
// could wait forever for a lock of the allocator that one of them held. fork(3) releases those
// locks in its child, which has one thread and makes the clone as its own sibling.
Result<pid_t> ForkIntoNamespaces() {
  auto [read, write] = TRY(sys::Pipe());
  pid_t between = ::fork();
  if (between < 0) return Errno("fork");
  if (between == 0) {
    long pid = ::syscall(SYS_clone, kNamespaces | CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr,
                         nullptr);
    if (pid == 0) return 0;
    int told = static_cast<int>(pid < 0 ? -errno : pid);
    (void)!::write(write.get(), &told, sizeof told);
    ::_exit(0);
  }
  write.Close();
  int told = -EIO;
  while (::read(read.get(), &told, sizeof told) < 0 && errno == EINTR) {
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (told < 0) return sys::NamespaceRefused("clone(CLONE_NEWUSER)", -told);
  return told;
}

Error Late() { return {Code::kTemporary, "unpacking the image timed out"}; }

}  // namespace

Result<UnpackProcess> UnpackProcess::Start(const Fd& directory, bool lowest, int ratio_max,
                                           LayerBudget& budget, uid_t uid, gid_t gid) {
  UnpackResources resources;
  auto [packed_read, packed_write] = TRY(sys::Pipe());
  auto [ours, theirs] = TRY(sys::SocketPair());
  (void)::fcntl(packed_write.get(), F_SETPIPE_SZ, kPipeBytes);  // A user's pipes are limited.
  if (::fcntl(packed_write.get(), F_SETFL, O_NONBLOCK) != 0) return Errno("fcntl");
  resources.packed = std::move(packed_read);
  resources.reports = std::move(theirs);
  resources.directory = TRY(sys::OpenAt(directory.get(), ".", O_RDONLY | O_DIRECTORY));
  resources.lowest = lowest;
  resources.ratio_max = ratio_max;
  resources.budget = &budget;

  pid_t pid = TRY(ForkIntoNamespaces());
  if (pid == 0) {
    ours.Close();
    packed_write.Close();
    RunUnpacking(std::move(resources));
  }
  UnpackProcess process(pid, TRY(sys::PidfdOpen(pid)), std::move(packed_write), std::move(ours));
  Status mapped = sys::MapIds(process.pid_, {0, uid}, {0, gid}, ::geteuid() == 0);
  if (!mapped.ok()) {
    return Error{Code::kUnsupported, mapped.error().what, sys::NamespaceRemedy()};
  }
  TRY(sys::SendMessage(process.reports_.get(), "mapped"));
  return process;
}

UnpackProcess::UnpackProcess(UnpackProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      packed_(std::move(other.packed_)),
      reports_(std::move(other.reports_)),
      ended_(other.ended_),
      layer_(std::move(other.layer_)) {}

UnpackProcess::~UnpackProcess() {
  if (pid_ < 0) return;
  Kill();
  (void)Reap();
}

void UnpackProcess::Kill() {
  (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

int UnpackProcess::Reap() {
  int status = 0;
  while (::waitpid(std::exchange(pid_, -1), &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Status UnpackProcess::TakeReport(const Look& look, Deadline deadline) {
  sys::Message message = TRY(sys::ReceiveMessage(reports_.get(), kUnpackMessageBytesMax, deadline));
  if (message.bytes.empty()) {
    Kill();
    int status = Reap();
    std::string why = WIFSIGNALED(status) ? " by signal " + std::to_string(WTERMSIG(status)) : "";
    return Error{Code::kIo, "the unpacking process was killed" + why};
  }
  UnpackReport report = TRY(ParseReport(message.bytes));
  if (Error* error = std::get_if<Error>(&report)) return std::move(*error);
  if (LookBelow* question = std::get_if<LookBelow>(&report)) {
    LowerEntry entry = TRY(look(question->path));
    return sys::SendMessage(reports_.get(), RenderAnswer(entry), entry.file.get());
  }
  layer_ = std::move(std::get<UnpackedLayer>(report));
  ended_ = true;
  return Ok();
}

Status UnpackProcess::Feed(std::string_view bytes, const Look& look, Deadline deadline) {
  while (!bytes.empty()) {
    ssize_t n = ::write(packed_.get(), bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    // The side that closed the pipe has said why, or will say so soon.
    bool closed = n < 0 && errno == EPIPE;
    if (n < 0 && errno != EAGAIN && !closed) return Errno("write");
    pollfd waits[2] = {{reports_.get(), POLLIN, 0}, {packed_.get(), POLLOUT, 0}};
    int ready = ::poll(waits, closed ? 1 : 2, deadline.poll_ms());
    if (ready < 0 && errno != EINTR) return Errno("poll");
    if (ready == 0) return Late();
    if (ready > 0 && waits[0].revents != 0) TRY(TakeReport(look, deadline));
    if (ended_) return Error{Code::kInvalid, "the layer ends before its blob"};
  }
  return Ok();
}

Result<UnpackedLayer> UnpackProcess::Finish(const Look& look, Deadline deadline) {
  packed_.Close();
  while (!ended_) {
    bool ready = TRY(sys::WaitReadable(reports_.get(), deadline));
    if (!ready) return Late();
    TRY(TakeReport(look, deadline));
  }
  return std::move(layer_);
}

}  // namespace image
