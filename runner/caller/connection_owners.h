// SPDX-License-Identifier: Apache-2.0
// The answering side of identity.h, in the supervisor, which sees the sandbox's processes from
// outside.
//
// A connection belongs to the process that called connect(2), as it was at that moment: whatever it
// executes later, whichever process it passes the socket to, and whether it is still alive. The
// owner is recorded while the call waits; an answer is then two look-ups, however many processes
// and descriptors there are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/deadline.h"
#include "base/fd.h"
#include "caller/identity.h"
#include "caller/process_lineage.h"
#include "caller/program_links.h"

namespace caller {

// A program that is about to connect a socket.
struct Connector {
  uint64_t inode = 0;    // The socket's. The kernel gives it to no other within kConnectorAge.
  Owner owner;           // With its `destination`, where the connection is led elsewhere.
  bool pending = false;  // An executable is still to be read: ask again when Proceed() says so.
};

class ConnectionOwners {
 public:
  // `init` is the sandbox's pid 1 as this process numbers it; `diagnostics` a socket for
  // sock_diag(7) in its network namespace. Without one, /proc/net/tcp is read instead. `links` are
  // reported with every owner that they lead to. With `watched`, every connect(2) is seen, so a
  // connection that is not remembered evaded the watch. With `shared`, other processes of the
  // machine are in that network namespace, too.
  ConnectionOwners(pid_t init, bool watched, Fd diagnostics, ProgramLinks links,
                   bool shared = false)
      : init_(init),
        watched_(watched),
        shared_(shared),
        diagnostics_(std::move(diagnostics)),
        links_(std::move(links)) {}

  // Follows the sandbox's new first process, `init`. Keeps what is known of connections.
  void Follow(pid_t init) {
    init_ = init;
    lineages_ = LineageReader(init);
  }

  // Finds the program that connects, while `thread` waits in connect(2) with its descriptor
  // `socket`; nullopt if that is not a socket. A process above it that holds the socket under the
  // same number, which would read what it could not ask for itself, makes it ambiguous. Believe it
  // only when the thread still waits afterwards.
  std::optional<Connector> Examine(pid_t thread, int socket);
  void Remember(Connector connector);

  // Returns the owner of `question`'s connection: who connected it. A connection that was not seen
  // while the watch is in force (a thread swapped its descriptors under our eyes, or found another
  // call) is refused; where the network is shared and no process of the sandbox holds its socket,
  // it is a stranger's. Where this host refuses to watch, the owner is the one process that holds
  // the socket, found by looking through all of them; several must be the same programs. Never
  // fails: what goes wrong is a refusal. Returns nullopt while an executable is still to be read.
  std::optional<Owner> Find(const Question& question);

  // Reads one question from `socket` and answers it, or does so in Proceed(). Call when the socket
  // is readable. Fails when the peer is gone (kIo) or sends nonsense (kInvalid): the gateway is to
  // be ended then.
  Status AnswerQuestion(int socket);

  // Reads a piece of the executable that a call or a question waits for, or answers the question
  // that has waited longest on `socket`: little enough that limits and signals can be looked at in
  // between. Returns true if no executable is being read: what Examine() called pending can be
  // examined again.
  Result<bool> Proceed(int socket);
  // Returns whether a question waits for Proceed().
  bool pending() const { return !waiting_.empty(); }
  // Returns how many connections came from processes outside of the sandbox.
  int64_t strangers() const { return strangers_; }

 private:
  struct Remembered {
    Connector connector;
    Deadline until;
    size_t bytes = 0;
  };
  using Order = std::list<Remembered>;

  std::optional<uint64_t> FindInode(const Question& question);
  std::optional<Owner> FindHolder(uint64_t inode);
  bool HeldInSandbox(uint64_t inode) const;
  static Owner OwnerOf(Lineage lineage);
  void AddLinks(policy::Caller& caller) const;
  void Forget(Order::iterator remembered);

  pid_t init_;
  bool watched_;
  bool shared_;
  Fd diagnostics_;
  bool diagnostics_tell_ = false;  // They found a socket once: "no such socket" is true then.
  ProgramLinks links_;
  LineageReader lineages_{init_};
  Order order_;  // Oldest first.
  std::unordered_map<uint64_t, Order::iterator> by_inode_;
  size_t bytes_ = 0;  // Sum over `order_`.
  int64_t strangers_ = 0;
  std::deque<Question> waiting_;
};

}  // namespace caller
