// SPDX-License-Identifier: Apache-2.0
// Runs a program of the host to its end and returns its output. For one that works on meanwhile,
// see base/child.h.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/program_places.h"
#include "base/result.h"

// Puts the calling process, which has one thread, into the cgroups of v1 whose `tasks` files are
// open here for writing. Moving another process waits for all readers of the kernel's lock on
// thread groups, ten milliseconds and more; a thread that moves itself waits for nothing
// (Linux 5.5).
Status JoinCgroups(const std::vector<Fd>& tasks);

// Returns whether the process has ended, also where its parent has not reaped it: it is a zombie
// then, to which kill(2) still sends. The `pid` is of this PID namespace.
bool HasEnded(pid_t pid);

// Runs a program of the host, without a shell, and reads its output. Nothing else starts a program
// outside a sandbox.
class Process {
 public:
  struct Command {
    std::vector<std::string> argv;                                 // argv[0]: a name.
    std::vector<std::pair<std::string, std::string>> environment;  // The whole of it, but PATH.
    std::string directory = "/";
    std::string input = {};  // The text of its standard input; at most 4096 bytes.
    // It gets SIGKILL when the thread that started it ends, however that comes about (prctl(2)).
    bool ends_with_starter = false;
    bool with_errors = true;  // Its standard error is read back too; otherwise it is thrown away.
  };

  // Starts it from `places`, standard output and error into one pipe. Fails with kNotFound if it is
  // not there, with kIo if it cannot be started.
  static Result<Process> Start(const ProgramPlaces& places, const Command& command);

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)) {}
  Process& operator=(Process&&) = delete;
  // Kills and reaps what still runs.
  ~Process();

  // Returns what it printed until it closed its output or `deadline` passed; at most `bytes_max`,
  // the rest is left. Ends it.
  std::string Finish(size_t bytes_max, Deadline deadline);

 private:
  Process(pid_t pid, Fd out) : pid_(pid), out_(std::move(out)) {}
  void End();

  pid_t pid_;
  Fd out_;
};
