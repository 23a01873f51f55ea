// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gateway/authority.h"
#include "gateway/services.h"
#include "gateway/stream.h"
#include "policy/destination.h"

namespace gateway {

// Where a connection may lead: resolved once, judged once. Only these addresses are ever dialled.
struct Route {
  Authority authority;
  std::vector<policy::Address> addresses;  // At least one.
};

struct RouteDecision {
  bool allowed = false;
  std::string label;    // Why not, in OpenShell's words; empty when the name has no address.
  std::string failure;  // Why the name has no address.
  Route route;
};

// Resolves the host (a host alias is this machine's loopback) and judges every address.
Task<RouteDecision> DecideRoute(Services& services, Authority authority, policy::Handling handling);

// The connection to one destination, opened anew when it cannot be used any more.
class Upstream {
 public:
  Upstream(Services& services, Route route) : services_(services), route_(std::move(route)) {}

  // Connects, if there is no connection that can carry a new request: the addresses in turn.
  Task<Status> Connect();
  // Connect, and TLS for the route's host on top.
  Task<Status> ConnectTls();

  bool connected() const { return stream_ != nullptr; }
  // True when the connection carried a request before: the peer may have closed it meanwhile.
  bool used() const { return used_; }
  void MarkUsed() { used_ = true; }
  // A connection is there.
  Stream& stream() { return *stream_; }
  // Frees the connection: nobody may be using its stream.
  void Drop() { stream_.reset(); }
  // Cuts the connection, if there is one; whoever uses its stream sees that. Connect opens a new
  // one.
  void Abort() {
    if (stream_) stream_->Abort();
  }

 private:
  Task<Status> Dial(policy::Address address);

  Services& services_;
  Route route_;
  std::unique_ptr<Stream> stream_;
  bool used_ = false;
};

}  // namespace gateway
