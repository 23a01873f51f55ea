// SPDX-License-Identifier: Apache-2.0
// Decides which addresses a name may resolve to: the guard against requests to the host's own
// network (SSRF). Rules: OpenShell's SSRF plan; host aliases as docs/decisions.md says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace policy {

// An IP address; v4 is kept as ::ffff:a.b.c.d so that mapped forms are one thing.
struct Address {
  std::array<uint8_t, 16> bytes{};

  bool is_v4() const;
  friend bool operator==(const Address&, const Address&) = default;
};
std::optional<Address> ParseAddress(std::string_view text);  // Without brackets.
std::string RenderAddress(const Address& address);

// The classes of addresses, from lenient to strict.
enum class AddressClass {
  kPublic,
  kInternal,       // RFC 1918 and similar ranges: blocked unless the policy means it.
  kAlwaysBlocked,  // Loopback, link-local, unspecified, metadata: no policy opens these.
};
AddressClass ClassifyAddress(const Address& address);
bool IsLoopback(const Address& address);

// True for host.openshell.internal and its two synonyms: the machine the gateway runs on.
bool IsHostAlias(std::string_view host);

// The handling that the endpoints which cover host:port for this caller ask of the gateway.
// Meaningful only after a decision allowed the connection.
struct Handling {
  bool skip_tls = false;             // `tls: skip`: a blind tunnel.
  bool inspect = false;              // Some endpoint judges requests.
  bool allow_encoded_slash = false;  // True if any covering endpoint says so.
  // True if an endpoint names this very host: private addresses are meant.
  bool declared_host = false;
  bool captured = false;  // True for `protocol: tcp`: also for programs that know no proxy.
  // `allow_uninspected_credentials` of any: a credential's host may stay uninspected.
  bool allow_uninspected_credentials = false;
  std::vector<std::string> allowed_ips;  // Union over the covering endpoints.
  std::string policy;                    // Name for the records.
};

struct AddressVerdict {
  bool allowed = false;
  std::string label;  // "internal address", "allowed_ips check failed", ...: OpenShell's.
  std::vector<Address>
      addresses;  // The addresses that may be dialled, in the resolver's order; no others may.
};

// Returns whether an address is one of the machine's own, of any of its interfaces.
using OwnAddressTest = bool (*)(const Address&);

// Judges every address that `host` resolved to: one forbidden address among them denies all.
// For a host alias pass the loopback addresses as `resolved`. The machine's own addresses, by
// `is_own` (null: not known here), are forbidden unless the policy contains that very address.
AddressVerdict DecideDestination(const Handling& handling, std::string_view host, uint16_t port,
                                 const std::vector<Address>& resolved,
                                 OwnAddressTest is_own = nullptr);

// Judges a host whose addresses are not known here, since a proxy resolves it: it is refused where
// the policy lists addresses, and at the ports of control planes. The verdict has no addresses.
AddressVerdict DecideUnresolved(const Handling& handling, uint16_t port);

// True if `cidr` is well formed; `why_not` then stays untouched. Overlap with an always-blocked
// range is an error (it fails at load and at connect).
bool ValidateAllowedIp(std::string_view cidr, std::string* why_not);

}  // namespace policy
