// SPDX-License-Identifier: Apache-2.0
#include "run/native/plan_text.h"

#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace run {

TEST_CASE("Endpoints say what they open, and for which programs") {
  policy::ParseContext context;
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(
      "version: 1\nnetwork_policies:\n  a:\n    endpoints:\n"
      "      - {host: api.example.com, port: 443, access: read-only}\n"
      "      - {host: raw.example.com, ports: [22, 443], tls: skip}\n"
      "      - host: g.example.com\n        port: 443\n        protocol: rest\n"
      "        rules: [{allow: {method: GET, path: /a}}]\n"
      "    binaries: [{path: /a}, {path: /b}, {path: /c}, {path: /d}, {path: /e}]\n",
      context);
  REQUIRE(parsed.ok());
  const std::string programs = "  for /a, /b, /c, /d and 1 more\n";
  CHECK(RenderEndpoints(parsed.value().policy) ==
        "endpoint    api.example.com:443  read-only" + programs +
            "endpoint    raw.example.com:22,443  any traffic, not inspected" + programs +
            "endpoint    g.example.com:443  1 rule, rest" + programs);
  CHECK(RenderEndpoints({}) == "endpoint    none: every connection is refused\n");
}

TEST_CASE("A sandbox's plan tells each path of the host once, and no content") {
  using Kind = sandbox::MountStep::Kind;
  sandbox::SandboxPlan plan;
  plan.checkout = "/work";
  auto add = [&](Kind kind, const char* target) {
    plan.namespaces().mounts.push_back({.kind = kind, .target = target});
  };
  add(Kind::kDirectory, "/usr");
  add(Kind::kBind, "/usr");
  add(Kind::kOverlay, "/etc");
  add(Kind::kReadOnly, "/etc");
  add(Kind::kMask, "/etc/shadow");
  add(Kind::kScratch, "/tmp");
  add(Kind::kWorkspace, "/work");
  add(Kind::kEmpty, "/work/report");
  add(Kind::kReadOnly, "/");
  plan.landlock = {{"/usr", false}, {"/tmp", true}, {"/work", true}};
  plan.workspace_files = {{".git/config", "theirs"}};
  plan.notes = {"/app: not on this host"};
  plan.limits = {1024, 1.5, 10, int64_t{1} << 30};
  plan.env = {"A=value", "B=other"};
  plan.argv = {"sh", "-c", "x"};
  plan.host_uid = plan.host_gid = 7;
  CHECK(RenderSandbox(plan) ==
        "read-write  /work (the checkout: changes become the patch)\n"
        "read-only   /etc\n"
        "read-only   /usr\n"
        "empty       /work/report\n"
        "replaced    /work/.git/config\n"
        "hidden      /etc/shadow\n"
        "scratch     /tmp\n"
        "note        /app: not on this host\n"
        "limits      memory 1KiB, disk 1GiB, processes 10, processors 1.5\n"
        "user        1000:1000 (host 7:7)\n"
        "command     sh -c x\n"
        "variables   A B\n");
}

}  // namespace run
