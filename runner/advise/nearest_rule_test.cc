// SPDX-License-Identifier: Apache-2.0
#include "advise/nearest_rule.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "policy/decide/test_policy.h"
#include "policy/load/parse.h"

namespace advise {
namespace {

std::string Hint(const policy::CompiledPolicy& compiled, const policy::Route& route,
                 const policy::HttpRequest& request) {
  policy::Verdict verdict = route.connection().allowed ? route.Decide(request) : route.connection();
  return RenderHint(compiled, route, verdict, {request, {}, {}}, "p.yml");
}

TEST_CASE("Every refusal names what denied it or what came nearest") {
  policy::CompiledPolicy compiled = policy::Compile(policy::kPolicy);
  policy::Route rest = policy::RouteOf(compiled, "rest.example.com");
  CHECK(Hint(compiled, rest, {"POST", "/repos/a/b/issues", ""}) ==
        "nearest rule: p.yml:18:20 allows GET /repos/**");
  CHECK(Hint(compiled, rest, {"PUT", "/repos/a/issues", ""}) ==
        "nearest rule: p.yml:18:20 allows GET /repos/**");
  CHECK(Hint(compiled, rest, {"GET", "/repos/secret/x", ""}) ==
        "denied by p.yml:21:13: GET /repos/secret/**");
  CHECK(Hint(compiled, rest, {"GET", "/repos/a", ""}).empty());
  policy::Route port = policy::RouteOf(compiled, "rest.example.com", 80);
  CHECK(Hint(compiled, port, {}) ==
        "nearest rule: p.yml:14:9 allows rest.example.com:443 for /usr/bin/curl");
  policy::Route program = policy::RouteOf(compiled, "rest.example.com", 443, {"/bin/x", {}, {}});
  CHECK(Hint(compiled, program, {}).find("for /usr/bin/curl") != std::string::npos);
  CHECK(
      Hint(compiled, policy::RouteOf(compiled, "other.example.com", 80), {}).find("example.com") !=
      std::string::npos);
  CHECK(Hint(compiled, policy::RouteOf(compiled, "example.org", 80), {}).empty());
}

}  // namespace
}  // namespace advise
