// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

namespace {

constexpr int kChildNotStarted = 127;  // The status that a shell gives.

struct Streams {
  int input;
  int output;
  int error;
};

[[noreturn]] void Become(const Child::Command& command, char* const* argv, char* const* envp,
                         const Streams& streams, pid_t parent) {
  ::setsid();
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kChildNotStarted);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) (void)::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  bool ready = ::chdir(command.directory.c_str()) == 0 && ::dup2(streams.input, 0) == 0 &&
               ::dup2(streams.output, 1) == 1 && ::dup2(streams.error, 2) == 2;
  if (ready) ::execve(argv[0], argv, envp);
  ::_exit(kChildNotStarted);
}

}  // namespace

Result<Child> Child::Start(const ProgramPlaces& places, const Command& command) {
  std::string program = places.Find(command.argv.at(0));
  if (program.empty()) return Error{Code::kNotFound, command.argv[0] + " is not on the PATH"};
  Fd null = TRY(sys::Open("/dev/null", O_RDWR));
  auto [output_read, output_write] = TRY(sys::Pipe());
  auto [error_read, error_write] = TRY(sys::Pipe());
  Streams streams{command.input >= 0 ? command.input : null.get(), output_write.get(),
                  error_write.get()};
  if (command.log >= 0) {
    streams.output = command.log;
    streams.error = command.error_log >= 0 ? command.error_log : command.log;
  }
  std::vector<std::string> variables = {"PATH=" + places.search_path()};
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv = {program.data()};
  for (size_t i = 1; i < command.argv.size(); ++i) {
    argv.push_back(const_cast<char*>(command.argv[i].c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) Become(command, argv.data(), envp.data(), streams, parent);
  Result<Fd> exit = sys::PidfdOpen(pid);
  Child child(pid, exit.ok() ? std::move(exit).value() : Fd(), std::move(output_read),
              std::move(error_read));
  if (!child.exit_.valid()) return Errno("pidfd_open");
  if (command.log >= 0) {
    child.output_.Close();
    child.error_.Close();
  }
  return child;
}

Child::~Child() {
  if (pid_ < 0) return;
  Signal(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::Signal(int signal) const {
  if (pid_ < 0) return;
  ::kill(-pid_, signal);
  ::kill(pid_, signal);  // Before it had a session.
}

Result<int> Child::Wait(Deadline deadline) {
  if (!TRY(sys::WaitReadable(exit_.get(), deadline))) {
    return Error{Code::kTemporary, "the program does not end"};
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return Errno("waitpid");
  }
  // Processes that it left behind in its session end with it.
  ::kill(-std::exchange(pid_, -1), SIGKILL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
