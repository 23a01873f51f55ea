// SPDX-License-Identifier: Apache-2.0
// The addresses that names get in the sandbox, and the way back from such an address to its name.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "gateway/names/limits.h"
#include "policy/model/destination.h"

namespace gateway {

// Addresses that stand for names: what the sandbox's name service answers with, and how a captured
// connection's destination is mapped back to its name. They lie in 198.18.0.0/15 (RFC 2544), which
// is not routed. At most kSyntheticNamesMax are known; the one that was not used for the longest is
// forgotten then, and its address given to another name only after all 131 000 others.
class SyntheticPool {
 public:
  // Returns the address of `host` (lower case, without a final dot); the same while it is known.
  policy::Address Assign(const std::string& host);
  // Returns the name that `address` was given out for.
  std::optional<std::string> Find(const policy::Address& address);

  // True for every address that could have been given out, and for the range that OpenShell gives
  // out over IPv6 (fd23:6f70:656e::/48). None of these is a real destination.
  static bool Contains(const policy::Address& address);

 private:
  struct Mapping {
    std::string host;
    uint32_t offset = 0;
  };
  using Order = std::list<Mapping>;  // The last used is the first.

  Order order_;
  std::unordered_map<std::string, Order::iterator> by_host_;
  std::map<uint32_t, Order::iterator> by_offset_;
  uint32_t next_ = 1;
};

}  // namespace gateway
