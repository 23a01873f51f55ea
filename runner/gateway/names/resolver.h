// SPDX-License-Identifier: Apache-2.0
// Resolves names for the gateway: literals, the hosts file, then DNS through c-ares. Files are
// read once, at the start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/task.h"
#include "gateway/names/hosts_file.h"
#include "gateway/names/limits.h"
#include "policy/model/destination.h"

struct ares_channeldata;

namespace gateway {

// Returns 127.0.0.1, then ::1.
std::vector<policy::Address> LoopbackAddresses();

// Names to addresses: literals, localhost and names below it, the hosts file, then DNS. Everything
// that is read from files is read by Open, before the process gives up reading files.
class Resolver {
 public:
  // `loop` must outlive the resolver, and the resolver every Resolve.
  static Result<std::unique_ptr<Resolver>> Open(EventLoop& loop, HostsFile hosts);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Returns at least one and at most kAddressesMax addresses, best first (RFC 6724), within
  // kResolveTimeout. Looks up a name with a dot as it stands, never with a search domain behind it.
  // Fails with kNotFound if the name has no address, otherwise with kTemporary.
  Task<Result<std::vector<policy::Address>>> Resolve(std::string host);

 private:
  struct Lookup;

  Resolver(EventLoop& loop, HostsFile hosts, Fd epoll)
      : loop_(loop), hosts_(std::move(hosts)), epoll_(std::move(epoll)) {}
  Task<void> Pump();
  void ServeSockets();

  EventLoop& loop_;
  HostsFile hosts_;
  Fd epoll_;  // The sockets of c-ares: one descriptor for the loop to wait for.
  ares_channeldata* channel_ = nullptr;
  size_t waiting_ = 0;  // Resolves under way.
  bool pumping_ = false;
};

}  // namespace gateway
