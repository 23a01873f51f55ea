// SPDX-License-Identifier: Apache-2.0
#include "caller/connection_owners.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "base/sys.h"
#include "caller/process_lineage.h"
#include "caller/process_table.h"

namespace caller {
namespace {

TEST_CASE("Without a sandbox nobody owns anything") {
  ConnectionOwners owners(0, true, Fd(), {});
  Owner answer = owners.Find(Question{5, {}, {}}).value();
  CHECK(answer.number == 5);
  CHECK(answer.refusal == "the sandbox has not started");
}

TEST_CASE("A connection that no process has is nobody's") {
  ConnectionOwners owners(::getpid(), true, Fd(), {});
  CHECK(owners.Find(Question{5, {}, {}})->refusal ==
        "no socket in the sandbox belongs to this connection");
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
        ParseSocketName(*ProcessHandle::Open(::getpid())->DescriptorTarget(one.get())));
  CHECK(connector.owner.pid > 0);
  CHECK(connector.owner.refusal.empty());
  CHECK(connector.owner.caller.binary == sys::ReadLink("/proc/self/exe"));
  CHECK_FALSE(connector.owner.caller.agent);  // This is the sandbox's first process here.
  CHECK_FALSE(owners.Examine(::getpid(), null.get()));
  CHECK_FALSE(owners.Examine(::getpid(), 9999));
}

// A connection within this process, and the question about its client.
struct Loopback {
  Loopback() {
    Fd listener = NewSocket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), any, size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), any, &size) == 0);
    client = NewSocket();
    REQUIRE(::connect(client.get(), any, size) == 0);
    server = Fd(::accept(listener.get(), nullptr, nullptr));
    question.remote = EndAt(address);
    REQUIRE(::getsockname(client.get(), any, &size) == 0);
    question.local = EndAt(address);
  }
  static Fd NewSocket() { return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  static Endpoint EndAt(const sockaddr_in& address) {
    Endpoint end;
    end.address[10] = end.address[11] = 0xff;
    ::memcpy(&end.address[12], &address.sin_addr, 4);
    end.port = ntohs(address.sin_port);
    return end;
  }
  Fd client;
  Fd server;
  Question question{7, {}, {}};
};

// So many processes that have all that this one has, as long as this lives.
class Children {
 public:
  explicit Children(size_t count) {
    while (pids_.size() < count) {
      pid_t pid = ::fork();
      if (pid == 0) {
        ::pause();
        ::_exit(0);
      }
      REQUIRE(pid > 0);
      pids_.push_back(pid);
    }
  }
  ~Children() {
    for (pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }

  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  std::vector<pid_t> pids_;
};

Owner FindAtLast(ConnectionOwners& owners, const Question& question) {
  std::optional<Owner> answer;
  while (!(answer = owners.Find(question))) REQUIRE(owners.Proceed(-1).ok());
  return *answer;
}

TEST_CASE("A connection that was not seen is refused where all are watched") {
  Loopback loopback;
  ConnectionOwners watched(::getpid(), true, Fd(), {});
  Owner unseen = watched.Find(loopback.question).value();
  CHECK(unseen.refusal == "no program was seen to make this connection");
  CHECK_FALSE(unseen.caller.agent);
  CHECK_FALSE(unseen.stranger);
  CHECK(watched.strangers() == 0);
  ConnectionOwners unwatched(::getpid(), false, Fd(), {});
  CHECK(FindAtLast(unwatched, loopback.question).caller.binary == sys::ReadLink("/proc/self/exe"));
}

TEST_CASE("A connection that no process of the sandbox holds is a stranger's") {
  Loopback loopback;
  Children sandbox(1);  // It has the socket, too.
  ConnectionOwners watched(sandbox.pids().front(), true, Fd(), {}, true);
  CHECK_FALSE(watched.Find(loopback.question)->stranger);  // The control.
  Loopback other;
  ConnectionOwners alone(sandbox.pids().front(), true, Fd(), {});
  CHECK_FALSE(alone.Find(other.question)->stranger);  // None can be there.
  const Owner stranger = watched.Find(other.question).value();
  CHECK(stranger.stranger);
  CHECK_FALSE(stranger.refusal.empty());
  CHECK(watched.strangers() == 1);
}

TEST_CASE("A connection that a crowd holds is nobody's: to look at all of it takes seconds") {
  Loopback loopback;
  ConnectionOwners owners(::getpid(), false, Fd(), {});
  {
    Children few(20);
    CHECK(FindAtLast(owners, loopback.question).refusal.empty());
  }
  Children crowd(130);
  CHECK(FindAtLast(owners, loopback.question).refusal == "too many processes hold the connection");
}

TEST_CASE("Questions that wait are answered one at a time, in their order") {
  Loopback loopback;
  auto [asks, answers] = sys::SocketPair().value();
  ConnectionOwners owners(::getpid(), false, Fd(), {});
  for (uint64_t number : {1, 2}) {
    loopback.question.number = number;
    REQUIRE(sys::SendMessage(asks.get(), RenderQuestion(loopback.question)).ok());
    REQUIRE(owners.AnswerQuestion(answers.get()).ok());
  }
  for (uint64_t number : {1, 2}) {
    INFO(number);
    REQUIRE(owners.pending());  // This program is read before either is answered.
    while (!owners.Proceed(answers.get()).value()) {
    }
    Result<sys::Message> message =
        sys::ReceiveMessage(asks.get(), kOwnerBytesMax, Deadline::After({}));
    REQUIRE(message.ok());
    CHECK(ParseOwner(message.value().bytes)->number == number);
    CHECK_FALSE(sys::WaitReadable(asks.get(), Deadline::After({})).value());
  }
  CHECK_FALSE(owners.pending());
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
  ProcessHandle process = ProcessHandle::Open(::getpid()).value();
  CHECK(process.birth().parent == ::getppid());
  CHECK(process.birth().started > 0);
  CHECK_FALSE(ProcessHandle::Open(0));
}

TEST_CASE("A process that has ended tells nothing, and has no parent any more") {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  ProcessHandle process = ProcessHandle::Open(pid).value();
  LineageReader lineages(::getpid());
  CHECK(process.Executable() == sys::ReadLink("/proc/self/exe"));
  CHECK(process.DescriptorTarget(0).has_value());
  CHECK(lineages.Read(pid).processes.size() == 1);
  CHECK(lineages.Read(pid).caller.agent);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  struct stat st {};
  CHECK_FALSE(process.Executable());
  CHECK_FALSE(process.StatExecutable(&st));
  CHECK_FALSE(process.OpenExecutable().valid());
  CHECK_FALSE(process.DescriptorTarget(0));
  CHECK(process.AbsoluteArguments().empty());
  CHECK(lineages.Read(pid).processes.empty());
}

TEST_CASE("Callers with the same programs are the same to every policy") {
  CHECK(SamePrograms({"/a", {"/b", "/c"}, {}, {}}, {"/a", {"/a", "/c", "/b"}, {"/x"}, {}}));
  CHECK(SamePrograms({"/b", {"/a"}, {}, {}}, {"/a", {"/b"}, {}, {}}));
  CHECK_FALSE(SamePrograms({"/a", {"/b"}, {}, {}}, {"/a", {}, {}, {}}));
  CHECK_FALSE(SamePrograms({"/a", {}, {}, {}}, {"/b", {}, {}, {}}));
}

}  // namespace
}  // namespace caller
