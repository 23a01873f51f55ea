// SPDX-License-Identifier: Apache-2.0
// The proxy that requests to configured services take, and the hosts that are reached without it.
#pragma once

#include <string>

#include "base/result.h"
#include "net/url.h"

namespace net {

struct Proxy {
  // "http://[USER:PASSWORD@]HOST[:PORT]", with or without "http://"; empty for no proxy. It may
  // hold a password: no error and no record quotes it.
  std::string url;
  // What NO_PROXY holds: host names, each with all names below it, addresses and networks
  // ("10.0.0.0/8"), separated by commas or blanks; "*" for all hosts.
  std::string except;
};

// Fails with kInvalid where `proxy.url` is not the address of an http or https proxy.
Status CheckProxy(const Proxy& proxy);

// Returns whether a request to `url` goes through the proxy. Those to this machine never do.
bool TakesProxy(const Proxy& proxy, const Url& url);

}  // namespace net
