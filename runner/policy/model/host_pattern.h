// SPDX-License-Identifier: Apache-2.0
// Hosts of endpoints: what may be written, what matches, and which two may mean the same host.
#pragma once

#include <string>
#include <string_view>

namespace policy {

// True if `host` is a pattern: if and only if it contains '*'.
bool IsHostPattern(std::string_view host);

// Returns the one spelling of a host that is compared: lower case, without brackets, blanks or one
// trailing dot; an address in its canonical text.
std::string CanonicalHost(std::string_view host);

// Returns `host` (canonical) as it stands before a port: an address of IPv6 in brackets.
std::string BracketedHost(const std::string& host);

// Returns what is wrong with `host` (canonical, not empty) as the host of an endpoint; empty if
// nothing is.
std::string HostFault(std::string_view host);
// Returns the same for `protocol: tcp`, whose names the policy's own name service answers.
// `written` is the host as the file has it.
std::string TcpHostFault(std::string_view written);

// Returns what is surprising about `host` (canonical) as an endpoint's, though it may be written: a
// pattern that covers a public suffix, an address that no policy can open, or loopback, since the
// sandbox's is its own. Empty if nothing is.
std::string HostWarning(std::string_view host);

// Returns whether `host` (canonical) matches an endpoint's `pattern`. A pattern never matches a
// zero byte.
bool HostMatches(std::string_view pattern, std::string_view host);

// Returns whether one host may match both. Never false if one does; true in doubt.
bool HostsOverlap(std::string_view first, std::string_view second);

}  // namespace policy
