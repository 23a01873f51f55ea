// SPDX-License-Identifier: Apache-2.0
// For tests: a policy with hosts of every kind, compiled, and the route of a caller in it.
#pragma once

#include <catch2/catch.hpp>
#include <string_view>
#include <utility>

#include "policy/decide/compiled.h"
#include "policy/load/parse.h"

namespace policy {

inline CompiledPolicy Compile(std::string_view yaml) {
  Result<ParsedPolicy> parsed = ParsePolicy(yaml, {});
  INFO((parsed.ok() ? "" : parsed.error().what));
  REQUIRE(parsed.ok());
  return CompiledPolicy(std::move(parsed).value().policy);
}

inline const Caller kCurl = {"/usr/bin/curl", {"/bin/bash"}, {}};

inline Route RouteOf(const CompiledPolicy& compiled, std::string_view host, uint16_t port = 443,
                     const Caller& caller = kCurl) {
  return compiled.FindRoute(compiled.MatchCaller(caller), host, port);
}

inline constexpr std::string_view kPolicy =
    "version: 1\n"
    "network_policies:\n"
    "  a_hosts:\n"
    "    endpoints:\n"
    "      - {host: exact.example.com, port: 443}\n"
    "      - {host: '*.wild.example.com', ports: [443, 8443]}\n"
    "      - {host: '**.deep.example.com', port: 443}\n"
    "      - {host: 'api-*.example.com', port: 443}\n"
    "      - {host: '*.s3.*.example.com', port: 443}\n"
    "      - {port: 9000, allowed_ips: [10.0.0.0/16]}\n"
    "    binaries: [{path: '/usr/**'}]\n"
    "  b_rest:\n"
    "    endpoints:\n"
    "      - host: rest.example.com\n"
    "        port: 443\n"
    "        protocol: rest\n"
    "        rules:\n"
    "          - allow: {method: GET, path: '/repos/**'}\n"
    "          - allow: {method: POST, path: '/repos/*/issues'}\n"
    "        deny_rules:\n"
    "          - {method: GET, path: '/repos/secret/**'}\n"
    "    binaries: [{path: /usr/bin/curl}]\n";

}  // namespace policy
