// SPDX-License-Identifier: Apache-2.0
// What a run loses once a stranger's text may have reached its model: `after_untrusted`. A policy
// is made narrower, never wider.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "policy/model/hosted_tools.h"

namespace policy {

struct Endpoint;
struct Policy;

// A host, by name or pattern, at one port; port 0 stands for all ports.
struct HostPort {
  std::string host;  // Canonical.
  uint16_t port = 0;
};
WIRE_ALL(HostPort, host, port)

// What `closes` may name beside hosts and the kinds of hosted tools.
inline constexpr std::string_view kClosesAll = "all";
inline constexpr std::string_view kClosesWrites = "writes";
inline constexpr std::string_view kClosesCredentials = "credentials";
inline constexpr std::string_view kClosesHostedTools = "hosted_tools";

// Appended to the reason of each refusal in a narrowed run, with Policy::narrowed_by behind it.
inline constexpr std::string_view kNarrowedReason = "; after_untrusted narrowed this run: ";

// One list: words, each of them above or in kHostedKinds, and hosts.
struct Doors {
  std::vector<std::string> words;
  std::vector<HostPort> hosts;

  bool Has(std::string_view word) const;
};
WIRE_ALL(Doors, words, hosts)

struct AfterUntrusted {
  Doors closes;                  // Empty: nothing ever closes.
  Doors stays;                   // Takes precedence. Of words, only kinds of hosted tools.
  std::vector<HostPort> trusts;  // Hosts whose answers do not count as a stranger's.

  bool used() const { return !closes.words.empty() || !closes.hosts.empty(); }
};
WIRE_ALL(AfterUntrusted, closes, stays, trusts)

// Returns whether one of `hosts` is or covers this host, canonical, at this port.
bool Covers(const std::vector<HostPort>& hosts, std::string_view host, uint16_t port);

// Returns "{closes: [writes, api.example.com:443], stays: [...]}", and "none" where it is not used:
// a value of `after_untrusted` that reads as `value`.
std::string RenderAfterUntrusted(const AfterUntrusted& value);

// Returns `policy` without what its `after_untrusted` closes. The hosts of `models`, which always
// stay, and those that a credential is `bound` to may be patterns. Where the host of an endpoint is
// a pattern, it closes if any host that it covers would, and what stays of it is kept by name.
// `by` says what narrowed it, for the reasons of refusals.
Policy Narrow(Policy policy, const std::vector<HostPort>& models,
              const std::vector<HostPort>& bound, std::string by);

}  // namespace policy
