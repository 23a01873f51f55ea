// SPDX-License-Identifier: Apache-2.0
// Lists and kills the processes of a lasting sandbox, and finds its shell.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <vector>

#include "base/fd.h"
#include "sandbox/sandbox.h"

namespace session {

// The processes of one sandbox, as its supervisor sees them: all below its first process. Sets of
// them have their numbers as the sandbox's own /proc has them, which is quick to list; in tier
// landlock, which has none, those of the host.
class Processes {
 public:
  // Borrowed; its first process ends after this is used last. It has run no command yet.
  explicit Processes(const sandbox::Sandbox& sandbox);

  // Returns all that there are now but the first one, with what has ended and was not waited for.
  std::set<pid_t> List() const;
  // Returns the shell: a grandchild of the sandbox's first process. -1 while no shell is running.
  pid_t shell() const;

  // Kills all but `spared` and what these have started, unless that is the shell or what keeps it:
  // theirs is killed. What is started meanwhile is killed too, as far as a moment allows.
  void KillBut(const std::set<pid_t>& spared) const;

 private:
  friend class Pause;
  // Returns the number of a process in its own PID namespace; -1 if it has ended.
  pid_t InnerNumber(pid_t pid) const;
  // Returns the keeper's child by the host's number; -1 if there is none.
  pid_t OuterShell() const;
  bool IsSpared(pid_t pid, pid_t shell, const std::set<pid_t>& spared,
                std::map<pid_t, bool>* known) const;

  const sandbox::Sandbox& sandbox_;
  pid_t first_;
  // The sandbox's program, by the host's number; -1 if it ended at once. It is looked up while the
  // first process has no other child: later ones may have smaller numbers.
  pid_t keeper_;
};

// Stops everything in the sandbox but its first process while it lives. Then children go on before
// their parents, as far as numbers tell: a shell sees none of its jobs stopped.
class Pause {
 public:
  explicit Pause(const Processes& processes);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  std::vector<Fd> stopped_;
};

}  // namespace session
