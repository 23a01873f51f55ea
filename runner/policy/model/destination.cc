// SPDX-License-Identifier: Apache-2.0
#include "policy/model/destination.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>

#include "base/result.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

// An address range. v4 ranges are kept in mapped form, so their prefixes are 96 longer.
struct Range {
  Address base;
  int prefix = 128;
};

constexpr std::array<uint16_t, 5> kControlPlanePorts = {2379, 2380, 6443, 10250, 10255};

constexpr std::string_view kAlwaysBlocked[] = {"127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8",
                                               "::1/128",     "fe80::/10",      "::/128"};
// Instance metadata outside link-local: AWS (of instances, of pods), Google, Oracle and Scaleway
// over IPv6, Alibaba, Oracle, and Azure's host. They hand out a machine's credentials, so no policy
// opens them either, though a range around them may be named.
constexpr std::string_view kMetadata[] = {
    "fd00:ec2::254/128", "fd00:ec2::23/128",   "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",   "100.100.100.200/32", "192.0.0.192/32",   "168.63.129.16/32"};
// RFC 6890's special purposes.
constexpr std::string_view kInternal[] = {
    "10.0.0.0/8",    "172.16.0.0/12", "192.168.0.0/16",  "100.64.0.0/10",
    "192.0.0.0/24",  "192.0.2.0/24",  "198.51.100.0/24", "203.0.113.0/24",
    "198.18.0.0/15", "224.0.0.0/4",   "240.0.0.0/4",     "fc00::/7",
    "fec0::/10",     "ff00::/8",      "64:ff9b:1::/48",  "2001:db8::/32"};

bool Contains(const Range& range, const Address& address) {
  int whole = range.prefix / 8;
  int bits = range.prefix % 8;
  if (std::memcmp(range.base.bytes.data(), address.bytes.data(), static_cast<size_t>(whole)) != 0) {
    return false;
  }
  if (bits == 0) return true;
  uint8_t mask = static_cast<uint8_t>(0xFF << (8 - bits));
  size_t at = static_cast<size_t>(whole);
  return (range.base.bytes[at] & mask) == (address.bytes[at] & mask);
}

std::optional<Range> ParseRange(std::string_view text) {
  size_t slash = text.find('/');
  std::optional<Address> base = ParseAddress(text.substr(0, slash));
  if (!base) return std::nullopt;
  // A mapped address written as IPv6 counts its prefix from 128.
  bool dotted = text.substr(0, slash).find(':') == std::string_view::npos;
  if (slash == std::string_view::npos) return Range{*base, 128};
  std::string_view digits = text.substr(slash + 1);
  if (digits.empty() || digits.size() > 3) return std::nullopt;
  int prefix = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    prefix = prefix * 10 + (c - '0');
  }
  if (prefix > (dotted ? 32 : 128)) return std::nullopt;
  return Range{*base, dotted ? prefix + 96 : prefix};
}

std::vector<Range> ParseRanges(std::span<const std::string_view> texts) {
  std::vector<Range> ranges;
  for (std::string_view text : texts) {
    std::optional<Range> range = ParseRange(text);
    ENSURE(range.has_value());
    ranges.push_back(*range);
  }
  return ranges;
}

// Parsed once; never changed.
const std::vector<Range>& AlwaysBlocked() {
  static const std::vector<Range> ranges = ParseRanges(kAlwaysBlocked);
  return ranges;
}
const std::vector<Range>& Metadata() {
  static const std::vector<Range> ranges = ParseRanges(kMetadata);
  return ranges;
}
const std::vector<Range>& Internal() {
  static const std::vector<Range> ranges = ParseRanges(kInternal);
  return ranges;
}

bool InAny(const std::vector<Range>& ranges, const Address& address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return Contains(range, address); });
}

Address MappedV4(const uint8_t* four) {
  Address address;
  address.bytes[10] = 0xFF;
  address.bytes[11] = 0xFF;
  std::copy(four, four + 4, address.bytes.begin() + 12);
  return address;
}

// The v4 addresses that a v6 address may lead to through a translator or a tunnel on the way: NAT64
// (RFC 6052, and RFC 8215 with its four places in a /48), 6to4 (RFC 3056), SIIT (RFC 2765), Teredo
// (RFC 4380, inverted), and the old v4-compatible form (RFC 4291, 2.5.5.1).
std::vector<Address> EmbeddedV4(const Address& address) {
  const std::array<uint8_t, 16>& b = address.bytes;
  auto begins = [&b](std::initializer_list<uint8_t> bytes) {
    return std::equal(bytes.begin(), bytes.end(), b.begin());
  };
  auto inverted = [&b](size_t at) { return static_cast<uint8_t>(~b[at]); };
  std::vector<std::array<uint8_t, 4>> found;
  const std::array<uint8_t, 4> last = {b[12], b[13], b[14], b[15]};
  if (begins({0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0})) found = {last};
  if (begins({0, 0x64, 0xFF, 0x9B, 0, 1})) {
    found = {
        last, {b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}};
    // At least the first bytes of a place that is not used are zero.
    std::erase_if(found, [](const auto& four) { return four[0] == 0; });
  }
  if (begins({0x20, 0x02})) found = {{b[2], b[3], b[4], b[5]}};
  if (begins({0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0})) found = {last};
  if (begins({0x20, 0x01, 0, 0}))
    found = {{inverted(12), inverted(13), inverted(14), inverted(15)}};
  bool low = begins({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  if (low && (b[12] | b[13]) != 0) found = {last};
  std::vector<Address> addresses;
  for (const auto& four : found) addresses.push_back(MappedV4(four.data()));
  return addresses;
}

bool IsControlPlanePort(uint16_t port) {
  return std::find(kControlPlanePorts.begin(), kControlPlanePorts.end(), port) !=
         kControlPlanePorts.end();
}

AddressVerdict Refused(std::string_view label) { return {false, std::string(label), {}}; }

// Returns whether `address` leads to the machine itself without a word of the policy's for it: as
// the host, or as a single address in `allowed_ips`.
bool IsUnnamedOwn(const Handling& handling, std::string_view host, const Address& address,
                  OwnAddressTest is_own) {
  if (is_own == nullptr) return false;
  std::vector<Address> reached = EmbeddedV4(address);
  reached.push_back(address);
  if (std::none_of(reached.begin(), reached.end(), is_own)) return false;
  if (handling.declared_host && ParseAddress(host) == address) return false;
  return std::none_of(handling.allowed_ips.begin(), handling.allowed_ips.end(),
                      [&](const std::string& text) {
                        std::optional<Range> range = ParseRange(text);
                        return range && range->prefix == 128 && range->base == address;
                      });
}

AddressVerdict DecideAllowedIps(const Handling& handling, uint16_t port,
                                const std::vector<Address>& resolved) {
  std::vector<Range> ranges;
  for (const std::string& text : handling.allowed_ips) {
    std::string why_not;
    if (!ValidateAllowedIp(text, &why_not)) return Refused("invalid allowed_ips in policy");
    ranges.push_back(*ParseRange(text));
  }
  if (IsControlPlanePort(port)) return Refused("allowed_ips check failed");
  for (const Address& address : resolved) {
    bool inside = std::any_of(ranges.begin(), ranges.end(),
                              [&](const Range& range) { return Contains(range, address); });
    if (!inside || ClassifyAddress(address) == AddressClass::kAlwaysBlocked) {
      return Refused("allowed_ips check failed");
    }
  }
  return {true, "", resolved};
}

AddressVerdict DecideClasses(const Handling& handling, uint16_t port,
                             const std::vector<Address>& resolved) {
  for (const Address& address : resolved) {
    AddressClass kind = ClassifyAddress(address);
    if (handling.declared_host) {
      if (kind == AddressClass::kAlwaysBlocked || IsControlPlanePort(port)) {
        return Refused("declared endpoint check failed");
      }
    } else if (kind != AddressClass::kPublic) {
      return Refused("internal address");
    }
  }
  return {true, "", resolved};
}

}  // namespace

bool Address::is_v4() const {
  for (size_t i = 0; i < 10; ++i) {
    if (bytes[i] != 0) return false;
  }
  return bytes[10] == 0xFF && bytes[11] == 0xFF;
}

std::optional<Address> ParseAddress(std::string_view text) {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (text.empty() || text.size() >= sizeof buffer) return std::nullopt;
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  std::copy(text.begin(), text.end(), buffer);
  in_addr v4;
  if (::inet_pton(AF_INET, buffer, &v4) == 1) {
    return MappedV4(reinterpret_cast<const uint8_t*>(&v4));
  }
  Address address;
  if (::inet_pton(AF_INET6, buffer, address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::string RenderAddress(const Address& address) {
  char buffer[INET6_ADDRSTRLEN] = {};
  const void* bytes = address.bytes.data() + (address.is_v4() ? 12 : 0);
  ::inet_ntop(address.is_v4() ? AF_INET : AF_INET6, bytes, buffer, sizeof buffer);
  return buffer;
}

AddressClass ClassifyAddress(const Address& address) {
  bool never = InAny(AlwaysBlocked(), address) || InAny(Metadata(), address);
  if (never) return AddressClass::kAlwaysBlocked;
  AddressClass found = InAny(Internal(), address) ? AddressClass::kInternal : AddressClass::kPublic;
  for (const Address& embedded : EmbeddedV4(address)) {
    found = std::max(found, ClassifyAddress(embedded));
  }
  return found;
}

bool IsLoopback(const Address& address) {
  return address.is_v4() ? address.bytes[12] == 127 : address == *ParseAddress("::1");
}

bool IsHostAlias(std::string_view spelling) {
  std::string host = CanonicalHost(spelling);
  return host == "host.openshell.internal" || host == "host.containers.internal" ||
         host == "host.docker.internal";
}

AddressVerdict DecideDestination(const Handling& handling, std::string_view host, uint16_t port,
                                 const std::vector<Address>& resolved, OwnAddressTest is_own) {
  if (resolved.empty()) return Refused("no address");
  if (IsHostAlias(host)) {
    bool loopback = std::all_of(resolved.begin(), resolved.end(), IsLoopback);
    if (!handling.declared_host || !loopback || IsControlPlanePort(port)) {
      return Refused("trusted-gateway check failed");
    }
    return {true, "", resolved};
  }
  AddressVerdict verdict = handling.allowed_ips.empty()
                               ? DecideClasses(handling, port, resolved)
                               : DecideAllowedIps(handling, port, resolved);
  bool unnamed_own = std::any_of(resolved.begin(), resolved.end(), [&](const Address& address) {
    return IsUnnamedOwn(handling, host, address, is_own);
  });
  return verdict.allowed && unnamed_own ? Refused("this machine's own address") : verdict;
}

AddressVerdict DecideUnresolved(const Handling& handling, uint16_t port) {
  if (!handling.allowed_ips.empty()) {
    return Refused("allowed_ips cannot be checked: the proxy resolves names");
  }
  if (IsControlPlanePort(port)) return Refused("declared endpoint check failed");
  return {true, "", {}};
}

bool ValidateAllowedIp(std::string_view cidr, std::string* why_not) {
  std::optional<Range> range = ParseRange(cidr);
  if (!range) {
    *why_not = "neither an IP address nor a CIDR range";
    return false;
  }
  for (std::string_view text : kAlwaysBlocked) {
    Range blocked = *ParseRange(text);
    const Range& wider = blocked.prefix <= range->prefix ? blocked : *range;
    const Range& narrower = blocked.prefix <= range->prefix ? *range : blocked;
    if (!Contains(wider, narrower.base)) continue;
    *why_not = "overlaps " + std::string(text) + ", which no policy can allow";
    return false;
  }
  for (const Range& metadata : Metadata()) {
    if (range->prefix < metadata.prefix || !Contains(metadata, range->base)) continue;
    *why_not = "is a cloud metadata address, which no policy can allow";
    return false;
  }
  return true;
}

}  // namespace policy
