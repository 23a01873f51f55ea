// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/code_of.h"

namespace {

Process::Command Shell(const std::string& script) {
  Process::Command command;
  command.argv = {"sh", "-c", script};
  return command;
}

std::string Run(const Process::Command& command, size_t bytes_max = 1000,
                Deadline deadline = Deadline::After(std::chrono::seconds(30))) {
  const ProgramPlaces places("/usr/bin:/bin", "");
  Result<Process> process = Process::Start(places, command);
  REQUIRE(process.ok());
  return process.value().Finish(bytes_max, deadline);
}

TEST_CASE("A program has the environment, directory and input it was given, and no other") {
  Process::Command command = Shell("cat; pwd; echo ${HOME-none}$ONE");
  command.environment = {{"ONE", "1"}, {"PATH", "/usr/bin:/bin"}};
  command.directory = "/usr";
  command.input = "input\n";
  CHECK(Run(command) == "input\n/usr\nnone1\n");
}

TEST_CASE("Errors are read back, or thrown away") {
  Process::Command command = Shell("echo out; echo err >&2");
  CHECK(Run(command) == "out\nerr\n");
  command.with_errors = false;
  CHECK(Run(command) == "out\n");
}

TEST_CASE("A program that is missing is not started") {
  Process::Command command;
  command.argv = {"no-such-program"};
  CHECK(CodeOf(Process::Start(ProgramPlaces("/usr/bin:/bin", ""), command)) == Code::kNotFound);
}

TEST_CASE("What prints too much or takes too long is ended, with all that it started") {
  CHECK(Run(Shell("while :; do echo x; done"), 10).size() == 10);
  auto began = Deadline::Clock::now();
  // The grandchild holds the output open.
  std::string said =
      Run(Shell("sleep 60 & echo $!; wait"), 1000, Deadline::After(std::chrono::seconds(3)));
  CHECK(Deadline::Clock::now() - began < std::chrono::seconds(30));
  REQUIRE_FALSE(said.empty());
  const pid_t grandchild = static_cast<pid_t>(std::stoi(said));
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    gone = ::kill(grandchild, 0) != 0;
    if (!gone) ::usleep(10000);
  }
  CHECK(gone);
}

TEST_CASE("A process has ended when it is a zombie") {
  CHECK_FALSE(HasEnded(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  CHECK_FALSE(HasEnded(child));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(::kill(child, 0) == 0);  // It still has its id.
  CHECK(HasEnded(child));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(HasEnded(child));
}

}  // namespace
