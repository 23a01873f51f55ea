// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace sandbox {
namespace {

bool Holds(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// A child that has a child of its own; tells the number of that.
pid_t Fork(pid_t* grandchild) {
  int channel[2];
  REQUIRE(::pipe(channel) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    pid_t below = ::fork();
    if (below == 0) {
      ::pause();
      ::_exit(0);
    }
    (void)!::write(channel[1], &below, sizeof below);
    ::pause();
    ::_exit(0);
  }
  REQUIRE(::read(channel[0], grandchild, sizeof *grandchild) == sizeof *grandchild);
  ::close(channel[0]);
  ::close(channel[1]);
  return child;
}

TEST_CASE("Descendants are found at every depth, and killed but for the spared") {
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  pid_t spared = ::fork();
  if (spared == 0) {
    ::pause();
    ::_exit(0);
  }
  pid_t grandchild = 0;
  pid_t child = Fork(&grandchild);
  std::vector<pid_t> found = Descendants(::getpid());
  CHECK(Holds(found, child));
  CHECK(Holds(found, grandchild));
  CHECK(Holds(found, spared));
  CHECK_FALSE(Holds(found, ::getpid()));
  CHECK(Descendants(child) == std::vector<pid_t>{grandchild});

  KillDescendants({spared});
  CHECK(Descendants(::getpid()) == std::vector<pid_t>{spared});
  CHECK(::kill(spared, 0) == 0);
  KillDescendants({});
  CHECK(Descendants(::getpid()).empty());
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

// A process that starts another and ends, again and again for longer than killing takes.
void Hop() {
  for (int hops = 0; hops < 50'000 && ::fork() == 0; ++hops) ::usleep(100);
  ::_exit(0);
}

TEST_CASE("What gives itself a new parent all the time is killed") {
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (int i = 0; i < 8; ++i) {
    if (::fork() == 0) Hop();
  }
  KillDescendants({});
  CHECK(Descendants(::getpid()).empty());
}

}  // namespace
}  // namespace sandbox
