// SPDX-License-Identifier: Apache-2.0
// Where a name may lead: the guard against requests that reach the host's own network.
// Rules: OpenShell's SSRF plan; host aliases as docs/decisions.md says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/decide.h"

namespace policy {

// An IP address; v4 is kept as ::ffff:a.b.c.d so that mapped forms are one thing.
struct Address {
  std::array<uint8_t, 16> bytes{};

  bool is_v4() const;
  friend bool operator==(const Address&, const Address&) = default;
};
std::optional<Address> ParseAddress(std::string_view text);  // Without brackets.
std::string RenderAddress(const Address& address);

enum class AddressClass {
  kPublic,
  kInternal,       // RFC 1918 and the like: blocked unless the policy means it.
  kAlwaysBlocked,  // Loopback, link-local, unspecified, metadata: no policy opens these.
};
AddressClass ClassifyAddress(const Address& address);

// True for host.openshell.internal and its two synonyms: the machine the gateway runs on.
bool IsHostAlias(std::string_view host);

struct DestinationDecision {
  bool allowed = false;
  std::string label;  // OpenShell's: "internal address", "allowed_ips check failed", ...
  std::vector<Address>
      addresses;  // What may be dialled, in the resolver's order; nothing else may.
};

// Judges every address that `host` resolved to: one forbidden address among them denies all.
// For a host alias pass the loopback addresses as `resolved`.
DestinationDecision DecideDestination(const Handling& handling, std::string_view host,
                                      uint16_t port, const std::vector<Address>& resolved);

// True when `cidr` is well formed; `why_not` then stays untouched. Overlap with an always-blocked
// range is an error (it fails at load and at connect).
bool ValidateAllowedIp(std::string_view cidr, std::string* why_not);

}  // namespace policy
