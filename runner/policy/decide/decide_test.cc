// SPDX-License-Identifier: Apache-2.0
// The tables in tests/policy/ hold the cases; here is what they cannot say.
#include <catch2/catch.hpp>

#include "policy/decide/test_decide.h"
#include "policy/load/parse.h"

namespace policy {
namespace {

Policy Read(std::string_view yaml) {
  ParseContext context;
  context.file = "p.yml";
  return ParsePolicy(yaml, context).value().policy;
}

const Caller kCurl{"/usr/bin/curl", {"/bin/bash", "/sbin/init"}, {"/usr/bin/curl", "/x"}};

TEST_CASE("DecideConnection gives OpenShell's reason for a program, word for word") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  one: {endpoints: [{host: a.example.com, port: 443}], binaries: [{path: /bin/one}]}\n"
      "  two: {endpoints: [{host: a.example.com, port: 443}], binaries: [{path: /bin/two}]}\n"
      "  links: {endpoints: [{host: b.example.com, port: 443}],\n"
      "          binaries: [{path: /usr/bin/python3}, {path: '/usr/lib/*'}]}\n");
  Decision decision = DecideConnection(policy, "a.example.com", 443, kCurl);
  CHECK_FALSE(decision.allowed);
  CHECK(decision.policy == "-");
  const std::string hint =
      "SYMLINK HINT: the binary path is the kernel-resolved target from /proc/<pid>/exe, not the "
      "symlink. If your policy specifies a symlink (e.g., /usr/bin/python3) but the actual binary "
      "is /usr/bin/python3.11, either: (1) use the canonical path in your policy (run 'readlink -f "
      "/usr/bin/python3' inside the sandbox), or (2) ensure symlink resolution is working (check "
      "sandbox logs for 'Cannot access container filesystem')";
  const std::string who = "(ancestors: [/bin/bash -> /sbin/init], cmdline: [/usr/bin/curl, /x])";
  CHECK(decision.reason == "binary '/usr/bin/curl' not allowed in policy 'one' " + who +
                               "; binary '/usr/bin/curl' not allowed in policy 'two' " + who);
  // Its hint about links stands where one may be the reason.
  auto reason = [&](std::string_view binary) {
    return DecideConnection(policy, "b.example.com", 443, {std::string(binary), {}, {}}).reason;
  };
  CHECK(reason("/usr/bin/python3.11")
            .ends_with("policy 'links' (ancestors: [], cmdline: []). " + hint));
  for (std::string_view other :
       {"/usr/bin/python2", "/usr/bin/python3/x", "/bin/python3.11", "/usr/bin/p"}) {
    CAPTURE(other);
    CHECK(reason(other).find("SYMLINK") == std::string::npos);
  }
}

TEST_CASE("DecideConnection says where the endpoint stands that allowed") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  a:\n"
      "    endpoints:\n"
      "      - {host: a.example.com, port: 443}\n"
      "    binaries: [{path: /usr/bin/curl}]\n");
  Decision decision = DecideConnection(policy, "A.example.com", 443, kCurl);
  CHECK(decision.allowed);
  CHECK(decision.at.line == 5);
  CHECK(decision.policy == "a");
}

TEST_CASE("A host with a zero byte is refused, also where any host is meant") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  a: {endpoints: [{port: 443, allowed_ips: [10.0.0.0/16]}], binaries: [{path: '/**'}]}\n");
  CHECK(DecideConnection(policy, "a.example.com", 443, kCurl).allowed);
  CHECK_FALSE(DecideConnection(policy, std::string_view("a\0b", 3), 443, kCurl).allowed);
}

TEST_CASE("A caller without a program matches no policy") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  a: {endpoints: [{host: a.example.com, port: 443}], binaries: [{path: '**'}]}\n");
  CHECK(DecideConnection(policy, "a.example.com", 443, kCurl).allowed);
  CHECK_FALSE(DecideConnection(policy, "a.example.com", 443, {"", {}, {"/x"}}).allowed);
}

TEST_CASE("DecideRequest without a connection that is allowed refuses") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  a: {endpoints: [{host: a.example.com, port: 443}], binaries: [{path: /bin/x}]}\n");
  CHECK_FALSE(DecideRequest(policy, "a.example.com", 443, kCurl, {"GET", "/", ""}).allowed);
  CHECK_FALSE(DecideRequest(Policy{}, "a.example.com", 443, kCurl, {"GET", "/", ""}).allowed);
}

TEST_CASE("DescribeHandling joins what all covering endpoints ask") {
  Policy policy = Read(
      "version: 1\n"
      "network_policies:\n"
      "  a: {endpoints: [{host: '*.example.com', port: 443}], binaries: [{path: '/**'}]}\n"
      "  b:\n"
      "    endpoints:\n"
      "      - {host: api.example.com, port: 443, protocol: rest, access: full,\n"
      "         path: /x, allow_encoded_slash: true}\n"
      "    binaries: [{path: '/**'}]\n"
      "  c: {endpoints: [{host: raw.example.net, port: 443, tls: skip}], binaries: [{path: "
      "'/**'}]}\n"
      "  d:\n"
      "    endpoints: [{host: in.example.org, port: 443, allowed_ips: [10.0.0.0/16]}]\n"
      "    binaries: [{path: '/**'}]\n");
  Handling api = DescribeHandling(policy, "api.example.com", 443, kCurl);
  CHECK(api.policy == "a");
  CHECK(api.inspect);
  CHECK(api.allow_encoded_slash);
  CHECK(api.declared_host);
  CHECK_FALSE(api.skip_tls);
  Handling other = DescribeHandling(policy, "www.example.com", 443, kCurl);
  CHECK_FALSE(other.inspect);
  CHECK_FALSE(other.declared_host);
  CHECK(DescribeHandling(policy, "raw.example.net", 443, kCurl).skip_tls);
  CHECK(DescribeHandling(policy, "in.example.org", 443, kCurl).allowed_ips ==
        std::vector<std::string>{"10.0.0.0/16"});
}

}  // namespace
}  // namespace policy
