// SPDX-License-Identifier: Apache-2.0
#include "advise/suggest.h"

#include <catch2/catch.hpp>

#include "policy/decide/test_decide.h"
#include "policy/load/parse.h"

namespace advise {
namespace {

TEST_CASE("SuggestLine asks for the least access that would do") {
  CHECK(SuggestLine({"Example.com", 443, "", "", ""}) == "example.com:443:read-only");
  CHECK(SuggestLine({"example.com", 443, "HEAD", "/x", ""}) == "example.com:443:read-only");
  CHECK(SuggestLine({"example.com", 443, "POST", "/x", ""}) ==
        "rules: [{allow: {method: 'POST', path: '/x'}}]");
  CHECK(SuggestLine({"example.com", 443, "DELETE", "/a*b", ""}) ==
        "rules: [{allow: {method: 'DELETE', path: '/a[*]b'}}]");
  CHECK(SuggestLine({"example.com", 443, "PUT", "/x'\n", ""}).empty());
  CHECK(SuggestLine({"2001:db8::1", 443, "GET", "/x", ""}) == "[2001:db8::1]:443:read-only");
}

TEST_CASE("A client that speaks no HTTP is suggested a raw connection") {
  const Denial denial{"db.example.com", 5432, "", "", "/usr/bin/psql", kRawConnection};
  CHECK(SuggestLine(denial) == "db.example.com:5432::tcp");
  CHECK(SuggestLine({"db.example.com", 5432, "", "", "/usr/bin/psql"}) ==
        "db.example.com:5432::tcp");
  CHECK(SuggestLine({"192.0.2.1", 7000, "", "", "/usr/bin/psql", kRawConnection}) ==
        "192.0.2.1:7000");
  policy::ParseContext context;
  context.file = "policy-suggestion.yml";
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(SuggestPolicy({denial}), context);
  REQUIRE(parsed.ok());
  const policy::Endpoint& endpoint = parsed.value().policy.network.front().endpoints.front();
  CHECK(endpoint.protocol == policy::Protocol::kTcp);
  CHECK(endpoint.access == policy::Access::kNone);
  parsed = policy::ParsePolicy(SuggestPolicy({{"192.0.2.1", 22, "", "", "/usr/bin/ssh"}}), context);
  REQUIRE(parsed.ok());
  CHECK(parsed.value().policy.network.front().endpoints.front().protocol == policy::Protocol::kL4);
}

TEST_CASE("SuggestLine suggests no line that would not help") {
  CHECK(SuggestLine({"example.com", 443, "GET", "/a/b", ""}) == "example.com:443:read-only");
  // Its slashes must be allowed first.
  CHECK(SuggestLine({"example.com", 443, "GET", "/a%2Fb", ""}).empty());
  CHECK(SuggestLine({"example.com", 443, "PUT", "/a%2Fb", ""}).empty());
}

TEST_CASE("SuggestLine names a host without the dot at its end") {
  CHECK(SuggestLine({"example.com.", 443, "GET", "/a/b", ""}) == "example.com:443:read-only");
}

TEST_CASE("SuggestLine suggests nothing that no policy opens, or that is no name") {
  for (const char* host :
       {"127.0.0.1", "::1", "169.254.169.254", "localhost", "", "METADATA.google.internal",
        "example.com..", "metadata", "metadata.", "localhost.", "10.200.0.1", "100.100.100.200",
        "x.localhost", "instance-data", "a b", "*.example.com", "x\ny", "sandbox"}) {
    CHECK(SuggestLine({host, 443, "", "", ""}).empty());
  }
}

TEST_CASE("SuggestPolicy is a policy that allows exactly what was refused") {
  std::vector<Denial> denials = {{"api.example.com", 443, "POST", "/a/*/[b]", "/usr/bin/curl"},
                                 {"api.example.com", 443, "GET", "/c", "/usr/bin/curl"},
                                 {"api.example.com", 443, "GET", "/c", "/usr/bin/curl"},
                                 {"other.example.com", 8443, "", "", "/usr/bin/git"}};
  std::string yaml = SuggestPolicy(denials);
  policy::ParseContext context;
  context.file = "policy-suggestion.yml";
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(yaml, context);
  REQUIRE(parsed.ok());
  const policy::Policy& policy = parsed.value().policy;
  const policy::Caller curl{"/usr/bin/curl", {}, {}};
  auto allows = [&](std::string_view method, std::string_view path) {
    return policy::DecideRequest(policy, "api.example.com", 443, curl, {method, path, ""}).allowed;
  };
  CHECK(allows("POST", "/a/*/[b]"));
  CHECK(allows("GET", "/c"));
  CHECK_FALSE(allows("POST", "/a/x/b"));
  CHECK_FALSE(allows("GET", "/d"));
  CHECK(policy::DecideConnection(policy, "other.example.com", 8443, {"/usr/bin/git", {}, {}})
            .allowed);
  CHECK_FALSE(policy::DecideConnection(policy, "other.example.com", 8443, curl).allowed);
  CHECK(yaml.find("#   - \"api.example.com:443:read-only\"\n") != std::string::npos);
  CHECK(yaml.find("read-write") == std::string::npos);
}

TEST_CASE("SuggestPolicy gives no program what another one was refused") {
  std::string yaml = SuggestPolicy({{"a.example.com", 443, "GET", "/x", "/bin/curl"},
                                    {"a.example.com", 443, "POST", "/y", "/bin/git"},
                                    {"a.example.com", 443, "POST", "/y", "/bin/wget"}});
  policy::ParseContext context;
  policy::Policy policy = policy::ParsePolicy(yaml, context).value().policy;
  REQUIRE(policy.network.size() == 2);
  auto allows = [&](const char* binary, std::string_view method, std::string_view path) {
    return policy::DecideRequest(policy, "a.example.com", 443, {binary, {}, {}}, {method, path, ""})
        .allowed;
  };
  CHECK(allows("/bin/curl", "GET", "/x"));
  CHECK(allows("/bin/wget", "POST", "/y"));
  CHECK_FALSE(allows("/bin/curl", "POST", "/y"));
  CHECK_FALSE(allows("/bin/git", "GET", "/x"));
}

TEST_CASE("SuggestPolicy makes a policy of a name that was refused, unless its host was reached") {
  std::vector<Denial> denials = {{"name.example.com", 53, "DNS", "", ""},
                                 {"api.example.com", 53, "DNS", "", ""},
                                 {"api.example.com", 8443, "GET", "/c", "/usr/bin/curl"}};
  std::string yaml = SuggestPolicy(denials);
  policy::ParseContext context;
  policy::Policy policy = policy::ParsePolicy(yaml, context).value().policy;
  REQUIRE(policy.network.size() == 2);
  CHECK(policy::DecideConnection(policy, "name.example.com", 443, {"/any", {}, {}}).allowed);
  CHECK(
      policy::DecideConnection(policy, "api.example.com", 8443, {"/usr/bin/curl", {}, {}}).allowed);
  CHECK_FALSE(
      policy::DecideConnection(policy, "api.example.com", 443, {"/usr/bin/curl", {}, {}}).allowed);
  CHECK(yaml.find(":53") == std::string::npos);
  CHECK(yaml.find(kSuggestionWarning) != std::string::npos);
}

TEST_CASE("SuggestPolicy takes nothing that could break out of its line") {
  CHECK(SuggestPolicy({{"a.example.com", 443, "GET", "/x'\n  evil: 1", "/bin/x"}}).empty());
  CHECK(SuggestPolicy({{"a.example.com", 443, "", "", "/bin/'x"}}).empty());
  CHECK(SuggestPolicy({}).empty());
}

TEST_CASE("SuggestPolicy offers no line for a request that writes, and says where it belongs") {
  std::string yaml = SuggestPolicy({{"a.example.com", 443, "DELETE", "/x", "/bin/x"},
                                    {"a.example.com", 443, "POST", "/x", "/bin/x"}});
  CHECK(yaml.find("#   - ") == std::string::npos);
  CHECK(yaml.find("agentic-ci policy export") != std::string::npos);
}

}  // namespace
}  // namespace advise
