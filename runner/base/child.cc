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

// Takes the place of the process that was forked: its own session, streams and signals.
bool Settle(int input, int output, int error, pid_t parent) {
  ::setsid();
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return false;
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) (void)::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return ::dup2(input, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(error, 2) == 2;
}

}  // namespace

Result<Child> Child::Begin(const Streams& streams, const std::function<void()>& become) {
  Fd null = TRY(sys::Open("/dev/null", O_RDWR));
  auto [output_read, output_write] = TRY(sys::Pipe());
  auto [error_read, error_write] = TRY(sys::Pipe());
  const int input = streams.input >= 0 ? streams.input : null.get();
  int output = output_write.get();
  int error = error_write.get();
  if (streams.log >= 0) {
    output = streams.log;
    error = streams.error_log >= 0 ? streams.error_log : streams.log;
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) {
    if (Settle(input, output, error, parent)) become();
    ::_exit(kChildNotStarted);
  }
  Result<Fd> exit = sys::PidfdOpen(pid);
  Child child(pid, exit.ok() ? std::move(exit).value() : Fd(), std::move(output_read),
              std::move(error_read));
  if (!child.exit_.valid()) return Errno("pidfd_open");
  if (streams.log >= 0) {
    child.output_.Close();
    child.error_.Close();
  }
  return child;
}

Result<Child> Child::Start(const ProgramPlaces& places, const Command& command) {
  std::string program = places.Find(command.argv.at(0));
  if (program.empty()) return Error{Code::kNotFound, command.argv[0] + " is not on the PATH"};
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
  return Begin({command.input, command.log, command.error_log}, [&] {
    if (::chdir(command.directory.c_str()) == 0) ::execve(argv[0], argv.data(), envp.data());
  });
}

Result<Child> Child::Fork(const Streams& streams, const std::function<int()>& body) {
  return Begin(streams, [&] {
    sys::CloseAllExcept({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    ::_exit(body());
  });
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
