// SPDX-License-Identifier: Apache-2.0
// Counts every allocation of this test program, to show that a request costs none.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <string>

#include "codec/wire/http_head.h"
#include "policy/decide/compiled.h"
#include "policy/decide/graphql_decide.h"
#include "policy/decide/rpc_decide.h"
#include "policy/load/parse.h"

namespace {
std::atomic<long> allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
// std::stable_sort asks this way for its buffer, and gives it back the usual way.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace policy {
namespace {

constexpr std::string_view kPolicy =
    "version: 1\n"
    "network_policies:\n"
    "  a:\n"
    "    endpoints:\n"
    "      - host: api.example.com\n"
    "        port: 443\n"
    "        protocol: rest\n"
    "        rules:\n"
    "          - allow: {method: GET, path: '/repos/**'}\n"
    "          - allow: {method: POST, path: '/repos/*/[a-z]*/{issues,pulls}'}\n"
    "          - allow: {method: GET, path: /search, query: {q: 'a*', v: {any: [1.*, '2']}}}\n"
    "        deny_rules:\n"
    "          - {method: '*', path: '/repos/*/secrets'}\n"
    "      - {host: api.example.com, port: 443, path: /graphql, protocol: graphql, access: full}\n"
    "      - host: api.example.com\n"
    "        port: 443\n"
    "        path: /rpc\n"
    "        protocol: json-rpc\n"
    "        rules: [{allow: {method: ping}}]\n"
    "    binaries: [{path: '/usr/bin/*'}]\n";

class Fixture {
 protected:
  Fixture() : compiled_(Parse()) {
    CallerMatch match = compiled_.MatchCaller({"/usr/bin/curl", {}, {}});
    route_ = compiled_.FindRoute(match, "api.example.com", 443);
  }

  static Policy Parse() {
    Result<ParsedPolicy> parsed = ParsePolicy(kPolicy, {});
    INFO((parsed.ok() ? "" : parsed.error().what));
    REQUIRE(parsed.ok());
    return parsed.value().policy;
  }

  CompiledPolicy compiled_;
  Route route_;
};

TEST_CASE_METHOD(Fixture, "The counter of allocations counts") {
  long before = allocations;
  std::string text(1000, 'x');
  CHECK(text.size() == 1000);
  CHECK(allocations > before);
}

TEST_CASE_METHOD(Fixture, "A request's decision allocates nothing, whatever it is") {
  struct Case {
    HttpRequest request;
    bool allowed;
  };
  const Case cases[] = {
      {{"GET", "/repos/acme/site/issues/with/a/rather/long/path", ""}, true},
      {{"HEAD", "/repos/acme", "page=1"}, true},
      {{"POST", "/repos/acme/site/pulls", ""}, true},
      {{"GET", "/search", "q=a%62c+d&v=1.2&v=2"}, true},
      {{"GET", "/search", "q=a&v=3"}, false},
      {{"GET", "/repos/acme/secrets", ""}, false},
      {{"DELETE", "/nowhere", "bad%2"}, false},
  };
  for (const Case& one : cases) {
    long before = allocations;
    Verdict verdict = route_.Decide(one.request);
    bool needs_body = route_.NeedsBody(one.request.path);
    long after = allocations;
    INFO(one.request.method << " " << one.request.path);
    CHECK(after == before);
    CHECK(verdict.allowed == one.allowed);
    CHECK_FALSE(needs_body);
  }
}

TEST_CASE_METHOD(Fixture, "Operations and calls that were parsed are decided without allocating") {
  codec::GraphqlOperation operation;
  operation.type = "mutation";
  operation.name = "CreateAnIssueWithALongName";
  operation.fields = {"createIssue"};
  codec::JsonRpcRequest calls;
  calls.calls.resize(2);
  calls.calls[0].method = "ping";
  calls.calls[1].method = "a method that nobody allows";
  long before = allocations;
  Verdict graphql = DecideGraphql(route_, {"POST", "/graphql", ""}, {&operation, 1});
  Verdict rpc = DecideRpc(route_, {"POST", "/rpc", ""}, calls);
  long after = allocations;
  CHECK(after == before);
  CHECK(graphql.allowed);
  CHECK_FALSE(rpc.allowed);
}

}  // namespace
}  // namespace policy
