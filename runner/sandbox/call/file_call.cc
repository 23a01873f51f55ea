// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/file_call.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <optional>

#include "sandbox/call/caller_view.h"

namespace sandbox {
namespace {

enum class Change { kMode, kOwner, kSeconds, kMicroseconds, kNanoseconds };

// The arguments of a call by their meaning; -1 if no argument has it.
struct Form {
  int number;
  Change change;
  int directory;
  int path;   // -1 if the first argument is the file itself.
  int value;  // The mode, the first of two ids, or the address of the times.
  int flags;
  bool follows = true;  // Without flags.
};

constexpr auto kForms = std::to_array<Form>({
    {SYS_fchmod, Change::kMode, -1, -1, 1, -1},
    {SYS_fchmodat, Change::kMode, 0, 1, 2, -1},
    {SYS_fchown, Change::kOwner, -1, -1, 1, -1},
    {SYS_fchownat, Change::kOwner, 0, 1, 2, 4},
    {SYS_utimensat, Change::kNanoseconds, 0, 1, 2, 3},
#ifdef SYS_chmod  // Linux on arm64 never had these.
    {SYS_chmod, Change::kMode, -1, 0, 1, -1},
    {SYS_chown, Change::kOwner, -1, 0, 1, -1},
    {SYS_lchown, Change::kOwner, -1, 0, 1, -1, false},
    {SYS_utime, Change::kSeconds, -1, 0, 1, -1},
    {SYS_utimes, Change::kMicroseconds, -1, 0, 1, -1},
    {SYS_futimesat, Change::kMicroseconds, 0, 1, 2, -1},
#endif
});

Result<Fd> OpenFile(const Call& call, const Form& form) {
  int flags = form.flags < 0 ? 0 : call.Number(static_cast<size_t>(form.flags));
  int directory = form.directory < 0 ? AT_FDCWD : call.Number(static_cast<size_t>(form.directory));
  uint64_t address = form.path < 0 ? 0 : call.arguments[static_cast<size_t>(form.path)];
  std::string path;
  if (address != 0) {
    std::optional<std::string> text = ReadText(call.thread, address, PATH_MAX);
    if (!text) return Errno("the path", EFAULT);
    path = std::move(*text);
  }
  bool itself = form.path < 0 || address == 0 || (path.empty() && (flags & AT_EMPTY_PATH) != 0);
  if (itself) {
    int fd = form.path < 0 ? call.Number(0) : directory;
    return OpenForCaller(call.thread, AT_FDCWD, "/proc/self/fd/" + std::to_string(fd), true);
  }
  if (path.empty()) return Errno("the path", ENOENT);
  bool follow = form.follows && (flags & AT_SYMLINK_NOFOLLOW) == 0;
  return OpenForCaller(call.thread, directory, path, follow);
}

// Two times, as utimensat(2) takes them; nullopt if the caller's memory cannot be read.
std::optional<std::array<timespec, 2>> ReadTimes(const Call& call, const Form& form) {
  std::array<timespec, 2> times{};
  times[0].tv_nsec = times[1].tv_nsec = UTIME_NOW;
  uint64_t address = call.arguments[static_cast<size_t>(form.value)];
  if (address == 0) return times;
  size_t size = form.change == Change::kSeconds ? sizeof(utimbuf) : sizeof times;
  std::optional<std::string> bytes = ReadMemory(call.thread, address, size);
  if (!bytes) return std::nullopt;
  int64_t words[4] = {};
  ::memcpy(words, bytes->data(), bytes->size());
  if (form.change == Change::kSeconds) {
    times = {timespec{words[0], 0}, timespec{words[1], 0}};
  } else {
    int64_t scale = form.change == Change::kMicroseconds ? 1000 : 1;
    times = {timespec{words[0], words[1] * scale}, timespec{words[2], words[3] * scale}};
  }
  return times;
}

// 0, or an errno. `file` is O_PATH, maybe of a symbolic link, which only has an owner and times.
int Apply(const Call& call, const Form& form, int file) {
  auto value = static_cast<size_t>(form.value);
  std::string self = "/proc/self/fd/" + std::to_string(file);
  int done = -1;
  if (form.change == Change::kMode) {
    done = ::chmod(self.c_str(), static_cast<mode_t>(call.Number(value)));
  } else if (form.change == Change::kOwner) {
    done = ::fchownat(file, "", static_cast<uid_t>(call.Number(value)),
                      static_cast<gid_t>(call.Number(value + 1)), AT_EMPTY_PATH);
  } else {
    std::optional<std::array<timespec, 2>> times = ReadTimes(call, form);
    if (!times) return EFAULT;
    done = ::utimensat(file, "", times->data(), AT_EMPTY_PATH);  // Linux 5.8.
  }
  return done == 0 ? 0 : errno;
}

}  // namespace

std::vector<int> FileCalls() {
  std::vector<int> numbers;
  for (const Form& form : kForms) numbers.push_back(form.number);
  return numbers;
}

void AnswerFileCall(const CallListener& listener, const Call& call,
                    const std::vector<std::string>& writable) {
  auto answer = [&](int error) { (void)listener.Answer(call.id, -error); };
  auto form = std::find_if(kForms.begin(), kForms.end(),
                           [&](const Form& one) { return one.number == call.number; });
  if (form == kForms.end()) return answer(ENOSYS);
  Result<Fd> file = OpenFile(call, *form);
  if (!file.ok()) return answer(file.error().os_error);
  if (!IsInAny(PathOf(file.value().get()), writable)) return answer(EPERM);
  if (!listener.Waits(call.id)) return;
  answer(Apply(call, *form, file.value().get()));
}

}  // namespace sandbox
