// SPDX-License-Identifier: Apache-2.0
// Idle connections to servers, kept for the next request to the same destination.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/http/limits.h"
#include "policy/model/destination.h"

namespace gateway {

// One connection to a server that speaks HTTP/1 and is between two requests, or carries one.
struct UpstreamConnection {
  std::unique_ptr<Stream> stream;
  std::string key;          // UpstreamKey: who it is that answers, and whether inside TLS.
  policy::Address address;  // The address that was dialled.
  bool used = false;  // True if it has carried a request: the server may close it at any time.
  Deadline::Clock::time_point idle_since{};
};

std::string UpstreamKey(bool tls, const std::string& host, uint16_t port);

// Connections between two requests, for every client of the gateway. The policy must have allowed
// the taker its host and port, and the address that it was dialled at; TLS inside it was verified
// for that host. Raw tunnels are never kept here.
class UpstreamPool {
 public:
  // Looks every `sweep` for connections that are no longer needed.
  explicit UpstreamPool(EventLoop& loop, milliseconds sweep = kIdleUpstreamSweep)
      : loop_(loop), sweep_(sweep) {}

  // Returns the one of `key` that was used last, is still open and leads to one of `addresses`; or
  // null.
  std::unique_ptr<UpstreamConnection> Take(const std::string& key,
                                           const std::vector<policy::Address>& addresses);
  // True if Take would give one.
  bool Has(const std::string& key, const std::vector<policy::Address>& addresses);
  // Takes back a connection whose last answer was read to its end; the oldest one goes when there
  // are more than kIdleUpstreamsMax.
  void Keep(std::unique_ptr<UpstreamConnection> connection);

 private:
  using Idle = std::vector<std::unique_ptr<UpstreamConnection>>;

  Idle::iterator Find(const std::string& key, const std::vector<policy::Address>& addresses);
  Task<void> Sweep();

  EventLoop& loop_;
  const milliseconds sweep_;
  Idle idle_;  // The one used last behind.
  bool sweeping_ = false;
};

}  // namespace gateway
