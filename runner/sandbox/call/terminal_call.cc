// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/terminal_call.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "base/sys.h"
#include "base/tree.h"
#include "sandbox/call/caller_view.h"

namespace sandbox {
namespace {

// The caller's descriptor `fd` if it is the first end of a terminal; otherwise ENOTTY, or what the
// kernel refuses the copy with.
Result<Fd> CopyTerminal(pid_t thread, int fd) {
  std::optional<pid_t> process = StatusNumber(thread, "Tgid");
  if (!process) return Errno("the caller", ESRCH);
  Fd held = TRY(sys::PidfdOpen(*process));
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, held.get(), fd, 0)));
  if (!copy.valid()) return Errno("pidfd_getfd");
  struct stat facts {};
  constexpr unsigned kAlternateMajor = 5;
  constexpr unsigned kPtmxMinor = 2;
  bool first = ::fstat(copy.get(), &facts) == 0 && S_ISCHR(facts.st_mode) &&
               facts.st_rdev == makedev(kAlternateMajor, kPtmxMinor);
  if (!first) return Errno("the descriptor", ENOTTY);
  return copy;
}

// Gives the caller the other end of `terminal`. It never becomes the supervisor's own terminal.
void AnswerWithOtherEnd(const CallListener& listener, const Call& call, const Fd& terminal,
                        int flags) {
  constexpr int kPassed = O_ACCMODE | O_NONBLOCK;
  Fd other(::ioctl(terminal.get(), TIOCGPTPEER, (flags & kPassed) | O_NOCTTY | O_CLOEXEC));
  if (!other.valid()) return void(listener.Answer(call.id, -errno));
  (void)listener.AnswerWithCopy(call.id, other.get(), (flags & O_CLOEXEC) != 0);
}

std::optional<int> NumberAfter(std::string_view text, std::string_view before) {
  if (!text.starts_with(before)) return std::nullopt;
  int number = -1;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + before.size(), end, number);
  return error == std::errc() && stop == end && number >= 0 ? std::optional(number) : std::nullopt;
}

// The caller's own terminal with that number; invalid when it has none.
Fd FindTerminal(pid_t thread, int number) {
  std::string place = "/proc/" + std::to_string(thread) + "/fd";
  Result<Fd> directory = sys::Open(place, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return {};
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory.value().get());
  if (!names.ok()) return {};
  for (const std::string& name : names.value()) {
    std::optional<int> fd = NumberAfter(name, "");
    std::string path = sys::ReadLink(place + "/" + name).value_or("");
    if (!fd || !path.ends_with("/ptmx")) continue;
    Result<Fd> terminal = CopyTerminal(thread, *fd);
    int found = -1;
    if (terminal.ok() && ::ioctl(terminal.value().get(), TIOCGPTN, &found) == 0 &&
        found == number) {
      return std::move(terminal).value();
    }
  }
  return {};
}

}  // namespace

void AnswerTerminalCall(const CallListener& listener, const Call& call) {
  Result<Fd> terminal = CopyTerminal(call.thread, call.Number(0));
  if (!terminal.ok()) return void(listener.Answer(call.id, -terminal.error().os_error));
  if (!listener.Waits(call.id)) return;
  AnswerWithOtherEnd(listener, call, terminal.value(), call.Number(2));
}

void AnswerTerminalOpen(const CallListener& listener, const Call& call) {
  size_t first = call.number == SYS_openat ? 1 : 0;
  std::optional<std::string> path = ReadText(call.thread, call.arguments[first], PATH_MAX);
  std::optional<int> number = path ? NumberAfter(*path, "/dev/pts/") : std::nullopt;
  Fd terminal = number ? FindTerminal(call.thread, *number) : Fd();
  if (!terminal.valid()) return void(listener.Continue(call.id));
  if (!listener.Waits(call.id)) return;
  AnswerWithOtherEnd(listener, call, terminal, call.Number(first + 1));
}

}  // namespace sandbox
