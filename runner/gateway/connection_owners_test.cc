// SPDX-License-Identifier: Apache-2.0
#include "gateway/connection_owners.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"
#include "gateway/process_lineage.h"
#include "gateway/process_table.h"

namespace gateway {
namespace {

TEST_CASE("Without a sandbox nobody owns anything") {
  ConnectionOwners owners(0, true, Fd(), {});
  Answer answer = owners.Find(Question{5, {}, {}}).value();
  CHECK(answer.number == 5);
  CHECK(answer.refusal == "the sandbox has not started");
}

TEST_CASE("A connection that no process has is nobody's") {
  ConnectionOwners owners(::getpid(), true, Fd(), {});
  CHECK(owners.Find(Question{5, {}, {}})->refusal ==
        "no socket of the sandbox has this connection");
}

TEST_CASE("Only a socket has a connector") {
  auto [one, other] = sys::SocketPair().value();
  Fd null = sys::Open("/dev/null", O_RDONLY).value();
  ConnectionOwners owners(::getpid(), true, Fd(), {});
  Connector connector = owners.Examine(::getpid(), one.get()).value();
  for (int i = 0; connector.pending && i < 1000; ++i) {
    (void)owners.Proceed(-1);  // This program is large, and lies where it could be changed.
    connector = owners.Examine(::getpid(), one.get()).value();
  }
  CHECK(connector.inode ==
        ParseSocketName(*Process::Open(::getpid())->DescriptorTarget(one.get())));
  CHECK(connector.owner.pid > 0);
  CHECK(connector.owner.refusal.empty());
  CHECK(connector.owner.caller.binary == sys::ReadLink("/proc/self/exe"));
  CHECK_FALSE(owners.Examine(::getpid(), null.get()));
  CHECK_FALSE(owners.Examine(::getpid(), 9999));
}

TEST_CASE("Names of descriptors that are sockets give their inode") {
  CHECK(ParseSocketName("socket:[4294967295]") == 4294967295);
  for (const char* name : {"", "socket:[]", "socket:[1", "socket:[1x]", "socket:[-1]", "pipe:[1]",
                           "/socket:[1]", "socket:[1] (deleted)"}) {
    INFO(name);
    CHECK_FALSE(ParseSocketName(name));
  }
}

TEST_CASE("A process is as old as the kernel says, and has its parent") {
  Process process = Process::Open(::getpid()).value();
  CHECK(process.birth().parent == ::getppid());
  CHECK(process.birth().started > 0);
  CHECK_FALSE(Process::Open(0));
}

TEST_CASE("A process that has ended tells nothing, and has no parent any more") {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  Process process = Process::Open(pid).value();
  LineageReader lineages;
  CHECK(process.Executable() == sys::ReadLink("/proc/self/exe"));
  CHECK(process.DescriptorTarget(0).has_value());
  CHECK(lineages.Read(pid, ::getpid()).processes.size() == 1);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  struct stat st {};
  CHECK_FALSE(process.Executable());
  CHECK_FALSE(process.StatExecutable(&st));
  CHECK_FALSE(process.OpenExecutable().valid());
  CHECK_FALSE(process.DescriptorTarget(0));
  CHECK(process.AbsoluteArguments().empty());
  CHECK(lineages.Read(pid, ::getpid()).processes.empty());
}

TEST_CASE("Callers with the same programs are the same to every policy") {
  CHECK(SamePrograms({"/a", {"/b", "/c"}, {}, {}}, {"/a", {"/a", "/c", "/b"}, {"/x"}, {}}));
  CHECK(SamePrograms({"/b", {"/a"}, {}, {}}, {"/a", {"/b"}, {}, {}}));
  CHECK_FALSE(SamePrograms({"/a", {"/b"}, {}, {}}, {"/a", {}, {}, {}}));
  CHECK_FALSE(SamePrograms({"/a", {}, {}, {}}, {"/b", {}, {}, {}}));
}

}  // namespace
}  // namespace gateway
