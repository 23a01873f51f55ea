// SPDX-License-Identifier: Apache-2.0
// The proxy that requests to configured services take, and the hosts that are reached without it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/secret.h"

namespace net {

struct Proxy {
  // "http://[USER:PASSWORD@]HOST[:PORT]", with or without "http://"; empty for no proxy. It may
  // hold a password: no error and no record quotes it.
  std::string url;
  // What NO_PROXY holds: host names, each with all names below it, addresses and networks
  // ("10.0.0.0/8"), separated by commas or blanks; "*" for all hosts.
  std::string except;
};

// The address of a proxy taken apart, for callers that speak to it themselves.
struct ProxyAddress {
  bool tls = false;    // The proxy itself is reached inside TLS ("https://").
  std::string host;    // Lower case; an IPv6 address without its brackets.
  uint16_t port = 0;   // If none is said, libcurl's: 1080, or 443 inside TLS.
  SecretString login;  // "USER:PASSWORD", decoded; empty if there is no user.
};

// Fails with kInvalid where `proxy.url` is not the address of an http or https proxy.
Result<ProxyAddress> ParseProxy(const Proxy& proxy);

// Does the same for a proxy that need not be set, and drops the address.
Status CheckProxy(const Proxy& proxy);

// Returns true if every host is reached directly: no proxy is set, or NO_PROXY contains "*".
bool TakesNone(const Proxy& proxy);

// Returns whether a connection to `host`, a name or an address as in Url, goes through the proxy.
// Those to this machine never do.
bool TakesProxy(const Proxy& proxy, const std::string& host);

}  // namespace net
