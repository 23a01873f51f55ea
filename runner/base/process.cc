// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

namespace {

constexpr int kNotStarted = 127;  // The status that a shell gives.

[[noreturn]] void Become(const Process::Command& command, char* const* argv, char* const* envp,
                         int in, int out, pid_t starter) {
  // A group of its own, so that what it starts can be ended with it.
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  bool ready = ::chdir(command.directory.c_str()) == 0 && null >= 0 && ::dup2(in, 0) == 0 &&
               ::dup2(out, 1) == 1 && ::dup2(command.with_errors ? out : null, 2) == 2;
  if (command.ends_with_starter) {
    // If the starter has ended before this call, its death is not reported any more.
    ready = ready && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == starter;
  }
  if (ready) ::execve(argv[0], argv, envp);
  ::_exit(kNotStarted);
}

}  // namespace

Status JoinCgroups(const std::vector<Fd>& tasks) {
  for (const Fd& file : tasks) TRY(sys::WriteAll(file.get(), "0").Context("joining a cgroup"));
  return Ok();
}

bool HasEnded(pid_t pid) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd entry{process.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

Result<Process> Process::Start(const ProgramPlaces& places, const Command& command) {
  constexpr size_t kInputBytesMax = 4096;  // A pipe takes this much without a reader.
  ENSURE(command.input.size() <= kInputBytesMax);
  std::string program = places.Find(command.argv.at(0));
  if (program.empty()) {
    std::string what = command.argv[0] + " is not on the PATH";
    for (const std::string& place : places.left_out()) what += ", without " + place;
    return Error{Code::kNotFound, what + (places.left_out().empty() ? "" : " in the checkout")};
  }
  auto [read, write] = TRY(sys::Pipe());
  auto [input_read, input_write] = TRY(sys::Pipe());
  TRY(sys::WriteAll(input_write.get(), command.input));
  input_write.Close();
  std::vector<std::string> variables = {"PATH=" + places.search_path()};
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv = {program.data()};
  std::vector<char*> envp;
  for (size_t i = 1; i < command.argv.size(); ++i)
    argv.push_back(const_cast<char*>(command.argv[i].c_str()));
  for (const std::string& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t starter = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) Become(command, argv.data(), envp.data(), input_read.get(), write.get(), starter);
  return Process(pid, std::move(read));
}

Process::~Process() { End(); }

void Process::End() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // Before it had a group.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::string Process::Finish(size_t bytes_max, Deadline deadline) {
  std::string output;
  while (output.size() < bytes_max) {
    Result<bool> readable = sys::WaitReadable(out_.get(), deadline);
    if (!readable.ok() || !readable.value()) break;
    char piece[4096];
    ssize_t got = ::read(out_.get(), piece, std::min(sizeof piece, bytes_max - output.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(piece, static_cast<size_t>(got));
  }
  End();
  return output;
}
