// SPDX-License-Identifier: Apache-2.0
// Where a client's connection leads: resolves and judges the destination once, and opens
// connections to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/http/authority.h"
#include "gateway/http/http2_server.h"
#include "gateway/http/message.h"
#include "gateway/http/upstream_pool.h"
#include "gateway/services.h"
#include "policy/model/destination.h"

namespace gateway {

// The destination of a connection: resolved once, judged once. Only these addresses are ever
// dialled.
struct Destination {
  Authority authority;
  std::vector<policy::Address> addresses;  // At least one; or just kResolvedByProxy.
};

struct DestinationVerdict {
  bool allowed = false;
  std::string label;    // Why not, in OpenShell's words; empty if the name has no address.
  std::string failure;  // Why the name has no address.
  Destination destination;
};

// Resolves the host (a host alias is this machine's loopback) and judges every address. A host that
// the egress proxy resolves has none to judge, and is refused where the policy lists addresses.
Task<DestinationVerdict> FindDestination(Services& services, Authority authority,
                                         policy::Handling handling);

// The ways of one client connection to its destination.
class Upstream {
 public:
  Upstream(Services& services, Destination destination);

  // Dials, unless a connection to there is kept already: a CONNECT is answered only then.
  Task<Status> Reach();
  // Returns the stream that Reach dialled and that is not used yet, or null.
  Stream* dialled() const { return dialled_ ? dialled_->stream.get() : nullptr; }

  // A place for one request: on a kept connection, on the one that Reach dialled, or on a new one
  // (`fresh`: on nothing that has carried a request before).
  struct Needs {
    bool tls = false;
    bool fresh = false;
  };
  Task<Result<std::unique_ptr<ServerRequest>>> Open(Needs needs);

  // Called if the client speaks HTTP/2. Inside TLS the server is offered it as well; without TLS it
  // is taken to know it, as it was by the client. Connections that speak it are shared by the
  // requests of this client. Close ends them, when no request is left and before this is destroyed.
  void OfferHttp2() { offers_http2_ = true; }
  Task<void> Close();

  // Opens a connection for bytes that are not HTTP: never one that was used.
  Task<Result<std::unique_ptr<Stream>>> OpenStream(bool tls);

 private:
  using Dialled = std::unique_ptr<UpstreamConnection>;

  Task<Result<Dialled>> DialAddress(policy::Address address);
  Task<Result<Dialled>> Dial();
  // Offers HTTP/2 inside TLS if `http2`.
  Task<Result<Dialled>> OpenUnused(bool tls, bool http2);
  // Returns null if there is none.
  std::unique_ptr<ServerRequest> TakeKept(Needs needs);
  Task<Result<std::unique_ptr<ServerRequest>>> OpenHttp1(Needs needs);
  Task<Result<std::unique_ptr<ServerRequest>>> DialHttp1(Needs needs);
  Task<Result<std::unique_ptr<ServerRequest>>> OpenHttp2(Needs needs);

  Services& services_;
  Destination destination_;
  std::string plain_key_;
  std::string tls_key_;
  Dialled dialled_;
  bool offers_http2_ = false;
  Http2Upstreams shared_;
  // One dials for all that wait: they may share what it opens.
  struct Turn {
    explicit Turn(EventLoop& loop) : come(loop) {}
    Signal come;
    std::optional<Error> failed;
  };
  bool dialling_ = false;
  std::vector<Turn*> waiting_;
};

}  // namespace gateway
