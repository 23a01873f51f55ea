// SPDX-License-Identifier: Apache-2.0
// Carries out calls for an agent without namespaces: the supervisor makes every socket, so that
// each can reach only this machine's loopback, and connects it, to one of the gateway's sockets or
// to a server of the agent's own. It reads the memory behind a pointer once and never lets such a
// call continue in the kernel, so it does not matter what another thread writes meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "sandbox/call/call_listener.h"
#include "sandbox/call/caller_view.h"
#include "sandbox/call/connect_watch.h"
#include "sandbox/call/socket_address.h"

namespace sandbox {

struct BrokerSetup {
  AgentIds ids;
  // Ports of 127.0.0.1 where the gateway listens: for clients that know the proxy, and for all
  // others.
  uint16_t proxy_port = 0;
  uint16_t capture_port = 0;
  // The directories that the agent may write, absolute and without links. No file comes into them
  // from elsewhere, nor leaves them.
  std::vector<std::string> writable;
  Fd diagnostics = {};  // TcpListeners()
};

class Broker {
 public:
  explicit Broker(BrokerSetup setup) : setup_(std::move(setup)) {}

  // Answers the call, unless it is a connection that the policy is asked about first: then Carry()
  // or an answer of its own must follow.
  std::optional<Connect> Take(const CallListener& listener, const Call& call);
  // Connects. Returns false if the caller does not wait any more.
  bool Carry(const CallListener& listener, const Connect& connect);

 private:
  // A socket that the agent has not connected yet.
  struct Own {
    Fd socket;
    int family = 0;
    bool replaces = false;       // It is to take the place of the caller's descriptor,
    bool close_on_exec = false;  // which was like this.
  };

  void MakeSocket(const CallListener& listener, const Call& call);
  std::optional<Connect> TakeConnect(const CallListener& listener, const Call& call);
  void ConnectUnix(const CallListener& listener, const Call& call, const Own& own,
                   const SocketAddress& address);
  bool Finish(const CallListener& listener, const Connect& connect, int error);
  void NoteBound(uint64_t inode, const Call& call);
  void BindAlike(int socket, uint64_t replaced, const Target& target) const;
  uint64_t Keep(Own own);
  void Drop(uint64_t inode);
  static void Note(std::deque<uint64_t>& inodes, uint64_t inode);
  bool IsServer(uint16_t port) const;

  BrokerSetup setup_;
  std::map<uint64_t, Own> own_;  // By inode.
  std::deque<uint64_t> order_;   // Their inodes, the oldest first.
  // The agent's, since they began to; the oldest are forgotten.
  std::deque<uint64_t> listening_;
  std::deque<uint64_t> connected_;
  std::deque<std::pair<uint64_t, SocketAddress>> bound_;
};

}  // namespace sandbox
