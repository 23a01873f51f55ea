// SPDX-License-Identifier: Apache-2.0
#include "advise/nearest_rule.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "policy/decide/compiled.h"
#include "policy/load/parse.h"

namespace policy {
namespace {

CompiledPolicy Compile(std::string_view yaml) {
  Result<ParsedPolicy> parsed = ParsePolicy(yaml, {});
  INFO((parsed.ok() ? "" : parsed.error().what));
  REQUIRE(parsed.ok());
  return CompiledPolicy(std::move(parsed).value().policy);
}

const Caller kCurl = {"/usr/bin/curl", {"/bin/bash"}, {}};

Route RouteOf(const CompiledPolicy& compiled, std::string_view host, uint16_t port = 443,
              const Caller& caller = kCurl) {
  return compiled.FindRoute(compiled.MatchCaller(caller), host, port);
}

constexpr std::string_view kPolicy =
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

std::string Hint(const CompiledPolicy& compiled, const Route& route, const HttpRequest& request) {
  Verdict verdict = route.connection().allowed ? route.Decide(request) : route.connection();
  return RenderHint(compiled, route, verdict, {request, {}, {}}, "p.yml");
}

TEST_CASE("Every refusal names what denied it or what came nearest") {
  CompiledPolicy compiled = Compile(kPolicy);
  Route rest = RouteOf(compiled, "rest.example.com");
  CHECK(Hint(compiled, rest, {"POST", "/repos/a/b/issues", ""}) ==
        "nearest rule: p.yml:18:20 allows GET /repos/**");
  CHECK(Hint(compiled, rest, {"PUT", "/repos/a/issues", ""}) ==
        "nearest rule: p.yml:18:20 allows GET /repos/**");
  CHECK(Hint(compiled, rest, {"GET", "/repos/secret/x", ""}) ==
        "denied by p.yml:21:13: GET /repos/secret/**");
  CHECK(Hint(compiled, rest, {"GET", "/repos/a", ""}).empty());
  Route port = RouteOf(compiled, "rest.example.com", 80);
  CHECK(Hint(compiled, port, {}) ==
        "nearest rule: p.yml:14:9 allows rest.example.com:443 for /usr/bin/curl");
  Route program = RouteOf(compiled, "rest.example.com", 443, {"/bin/x", {}, {}});
  CHECK(Hint(compiled, program, {}).find("for /usr/bin/curl") != std::string::npos);
  CHECK(Hint(compiled, RouteOf(compiled, "other.example.com", 80), {}).find("example.com") !=
        std::string::npos);
  CHECK(Hint(compiled, RouteOf(compiled, "example.org", 80), {}).empty());
}

}  // namespace
}  // namespace policy
