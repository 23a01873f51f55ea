// SPDX-License-Identifier: Apache-2.0
// The proxy of the network that this machine is in: connections that the policy allows leave
// through it, each as a tunnel (CONNECT). docs/reference/isolation.md, "Behind a proxy".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/http/authority.h"
#include "gateway/names/resolver.h"
#include "net/proxy.h"
#include "policy/model/destination.h"

namespace gateway {

class EgressProxy {
 public:
  // Takes the machine's settings. With `by_name` the proxy is asked for names and resolves them;
  // otherwise for the addresses that were judged here. Fails with kInvalid as net::ParseProxy does,
  // and with kUnsupported for a proxy that is itself reached inside TLS.
  static Result<EgressProxy> Read(net::Proxy proxy, bool by_name);

  // Returns whether connections to `authority` go through the proxy. Connections to this machine,
  // to hosts in NO_PROXY and to port 80 do not: HTTPS_PROXY is not about plain HTTP.
  bool Takes(const Authority& authority) const;
  // Returns whether the proxy resolves that host; its addresses are then not known here.
  bool Resolves(const Authority& authority) const;
  bool by_name() const { return by_name_; }
  // Returns "HOST:PORT": for people, without the user.
  std::string Shown() const;

  // Has the proxy connect to there: to `address`, or where that is kResolvedByProxy to the
  // authority's host. Returns the tunnel, of which not a byte has been read. Fails with kIo or
  // kTemporary; `loop`, `resolver` and this must outlive the call.
  Task<Result<std::unique_ptr<Stream>>> Open(EventLoop& loop, Resolver& resolver,
                                             Authority authority, policy::Address address) const;

 private:
  EgressProxy() = default;
  Task<Result<std::unique_ptr<Stream>>> Reach(EventLoop& loop, Resolver& resolver) const;
  // Says what the proxy did, for the records.
  Error Failed(Code code, std::string_view what) const;

  net::Proxy settings_;
  net::ProxyAddress address_;
  bool by_name_ = false;
};

// Stands for the addresses of a host that the proxy resolves. It is unspecified (::), which no
// judged destination can have.
inline constexpr policy::Address kResolvedByProxy{};

}  // namespace gateway
