// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/program_record.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>

#include "base/sys.h"
#include "codec/data/json_line.h"

namespace sandbox {
namespace {

constexpr size_t kArgumentBytesMax = size_t{64} << 10;
constexpr size_t kFileBytesMax = size_t{64} << 20;
constexpr size_t kStatusBytesMax = 8192;
constexpr unsigned kEventShift = 16;  // The shift of a stop's kind in a wait status.

std::string PathOf(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// Reads the arguments as the kernel laid them out, each with a null byte at its end.
std::string ReadArguments(pid_t pid) {
  std::string bytes(kArgumentBytesMax, '\0');
  Result<Fd> file = sys::Open(PathOf(pid, "cmdline"), O_RDONLY);
  ssize_t got = file.ok() ? ::read(file.value().get(), bytes.data(), bytes.size()) : 0;
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

int64_t ParentOf(pid_t pid) {
  constexpr std::string_view kField = "\nPPid:\t";
  Result<std::string> status = sys::ReadFile(PathOf(pid, "status"), kStatusBytesMax);
  const size_t at = status.ok() ? status.value().find(kField) : std::string::npos;
  if (at == std::string::npos) return 0;
  int64_t parent = 0;
  const char* digits = status.value().data() + at + kField.size();
  (void)std::from_chars(digits, status.value().data() + status.value().size(), parent);
  return parent;
}

bool IsGroupStop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

void ProgramRecord::Follow(pid_t pid) {
  constexpr long kOptions = PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                            PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) return file_.Close();
  Write("{\"version\":1}\n");
}

bool ProgramRecord::Take(pid_t pid, int status) {
  if (!WIFSTOPPED(status)) return false;
  const int event = status >> kEventShift;
  const int signal = WSTOPSIG(status);
  if (event == PTRACE_EVENT_EXEC) Note(pid);
  // A process that a signal stopped stays so, until SIGCONT: then it is reported again.
  if (event == PTRACE_EVENT_STOP && IsGroupStop(signal)) {
    (void)::ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);
  } else {
    const long delivered = event == 0 ? signal : 0;
    (void)::ptrace(PTRACE_CONT, pid, nullptr, delivered);
  }
  return true;
}

void ProgramRecord::Note(pid_t pid) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string line;
  codec::JsonLine json(line);
  json.Number("time", std::chrono::duration_cast<milliseconds>(now).count());
  json.Number("pid", pid).Number("parent", ParentOf(pid));
  json.Text("path", sys::ReadLink(PathOf(pid, "exe")).value_or("")).Array("arguments");
  const std::string arguments = ReadArguments(pid);
  for (std::string_view rest = arguments; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('\0'));
    json.Element(one);
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  json.CloseArray();
  if (arguments.size() == kArgumentBytesMax) json.Number("cut", 1);
  json.Close();
  Write(line + "\n");
}

// A file that ends with "cut" holds what was executed up to there, and an empty one nothing. One
// that can be neither written nor emptied would look whole: that ends the sandbox.
void ProgramRecord::Write(std::string_view line) {
  if (!wanted()) return;
  bytes_ += line.size();
  const bool fits = bytes_ <= kFileBytesMax;
  const bool written = sys::WriteAll(file_.get(), fits ? line : "{\"cut\":1}\n").ok();
  if (fits && written) return;
  if (!written && ::ftruncate(file_.get(), 0) != 0) ::_exit(1);
  file_.Close();
}

}  // namespace sandbox
