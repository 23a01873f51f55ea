// SPDX-License-Identifier: Apache-2.0
// A program of the host that works on while its output is read. For one that is run to its end,
// see base/process.h.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/program_places.h"
#include "base/result.h"

// A program of the host that works on while its output is read, as Process is one that is asked
// something. It leads a session of its own, and dies with the thread that started it.
class Child {
 public:
  struct Command {
    std::vector<std::string> argv;                                 // argv[0]: a name.
    std::vector<std::pair<std::string, std::string>> environment;  // The whole of it, but PATH.
    std::string directory = "/";
    int input = -1;  // Its standard input, borrowed; -1 for /dev/null.
    // The place where both outputs go, borrowed; -1 if output() and error() are to have them.
    int log = -1;
    int error_log = -1;  // Where its standard error goes instead, if there is a `log`; borrowed.
  };

  // Starts it from `places`. Fails with kNotFound if it is not there, with kIo if it cannot be
  // started.
  static Result<Child> Start(const ProgramPlaces& places, const Command& command);

  // The streams of a process that this program becomes itself: as in Command.
  struct Streams {
    int input = -1;
    int log = -1;
    int error_log = -1;
  };
  // Runs `body` in a process of its own, whose status is what it returns. It has its standard
  // streams alone: every other descriptor is closed there.
  static Result<Child> Fork(const Streams& streams, const std::function<int()>& body);

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        exit_(std::move(other.exit_)),
        output_(std::move(other.output_)),
        error_(std::move(other.error_)) {}
  Child& operator=(Child&&) = delete;
  // Kills it, with what it started, and reaps it.
  ~Child();

  // Return the readable ends of its pipes; invalid with Command::log.
  Fd& output() { return output_; }
  Fd& error() { return error_; }
  // Returns a pidfd, readable once it has ended.
  const Fd& exit() const { return exit_; }
  pid_t pid() const { return pid_; }

  // Sends `signal` to it and what it started, while it was not reaped.
  void Signal(int signal) const;
  // Waits for it, reaps it and returns its status as a shell has it. Fails with kTemporary if it
  // did not end in time; it still runs then. Must not be called again after it has succeeded.
  Result<int> Wait(Deadline deadline);

 private:
  // Forks; `become` is what the process does, with its streams in place.
  static Result<Child> Begin(const Streams& streams, const std::function<void()>& become);

  Child(pid_t pid, Fd exit, Fd output, Fd error)
      : pid_(pid), exit_(std::move(exit)), output_(std::move(output)), error_(std::move(error)) {}

  pid_t pid_;
  Fd exit_;
  Fd output_;
  Fd error_;
};
