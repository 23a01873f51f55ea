// SPDX-License-Identifier: Apache-2.0
#include "advise/diff.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"

namespace advise {
namespace {

policy::Policy Parsed(const std::string& yaml) {
  policy::ParseContext context;
  context.file = "p.yml";
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(yaml, context);
  INFO(yaml);
  REQUIRE(parsed.ok());
  return std::move(parsed).value().policy;
}

// A policy with one endpoint per argument, all for curl.
policy::Policy With(const std::vector<std::string>& endpoints) {
  std::string yaml = "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: /bin/curl}]\n";
  if (!endpoints.empty()) yaml += "    endpoints:\n";
  for (const std::string& endpoint : endpoints) yaml += "      - {" + endpoint + "}\n";
  return Parsed(yaml);
}

// Every difference as "+subject: what", "-..." and "~..."; one per line.
std::string Lines(const policy::Policy& now, const policy::Policy& next) {
  PolicyDifference difference = ComparePolicies(now, next, {});
  std::string text;
  for (const Difference& one : difference.opens) text += "+" + one.subject + ": " + one.what + "\n";
  for (const Difference& one : difference.closes) {
    text += "-" + one.subject + ": " + one.what + "\n";
  }
  for (const Difference& one : difference.changes) {
    text += "~" + one.subject + ": " + one.what + "\n";
  }
  return text;
}

std::string Between(const std::vector<std::string>& now, const std::vector<std::string>& next) {
  return Lines(With(now), With(next));
}

constexpr const char* kRead = "host: a.example.com, port: 443, protocol: rest, access: read-only";
constexpr const char* kFull = "host: a.example.com, port: 443, protocol: rest, access: full";
constexpr const char* kPlain = "host: a.example.com, port: 443";

TEST_CASE("ComparePolicies finds nothing between a policy and itself") {
  for (const char* endpoint :
       {kRead, kFull, kPlain, "host: a.example.com, port: 443, tls: skip",
        "host: a.example.com, port: 443, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}",
        "host: a.example.com, port: 443, protocol: graphql, access: read-write",
        "host: '*.example.com', port: 443, protocol: rest, "
        "rules: [{allow: {method: GET, path: '/[ab]?/**'}}]"}) {
    CHECK(Between({endpoint}, {endpoint}).empty());
  }
}

TEST_CASE("ComparePolicies sees hosts and ports come and go") {
  CHECK(Between({}, {kRead}) == "+a.example.com:443: connections with GET, HEAD, OPTIONS **\n");
  CHECK(Between({kRead}, {}) == "-a.example.com:443: connections with GET, HEAD, OPTIONS **\n");
  CHECK(Between({kPlain}, {"host: a.example.com, ports: [443, 8443]"}) ==
        "+a.example.com:8443: connections with every request\n");
  CHECK(Between({}, {"host: a.example.com, port: 5432, protocol: tcp"}) ==
        "+a.example.com:5432: raw connections\n");
}

TEST_CASE("ComparePolicies sees a pattern widen, and nothing in a host that it covers") {
  constexpr const char* kWide = "host: '*.example.com', port: 443";
  CHECK(Between({kPlain}, {kWide}) ==
        "+*.example.com:443: connections with every request (before: a.example.com)\n");
  CHECK(Between({kWide}, {kPlain}) ==
        "-*.example.com:443: connections with every request (after: a.example.com)\n");
  CHECK(Between({kWide}, {kWide, kPlain}).empty());
}

TEST_CASE("ComparePolicies compares rules by what they match") {
  constexpr const char* kRules =
      "host: a.example.com, port: 443, protocol: rest, "
      "rules: [{allow: {method: GET, path: '/repos/*'}}]";
  constexpr const char* kWider =
      "host: a.example.com, port: 443, protocol: rest, "
      "rules: [{allow: {method: GET, path: '/repos/**'}}, {allow: {method: POST, path: '/x'}}]";
  CHECK(Between({kRules}, {kWider}) == "+a.example.com:443: GET /repos/**; POST /x\n");
  CHECK(Between({kWider}, {kRules}) == "-a.example.com:443: GET /repos/**; POST /x\n");
  CHECK(Between({kRead}, {kFull}) == "+a.example.com:443: every method **\n");
  CHECK(Between({kRead}, {kPlain}) ==
        "+a.example.com:443: every request\n~a.example.com:443: no longer judged as rest\n");
  CHECK(Between({kFull}, {kPlain}) == "~a.example.com:443: no longer judged as rest\n");
}

TEST_CASE("ComparePolicies says when it cannot compare") {
  CHECK(Between({"host: a.example.com, port: 443, protocol: rest, "
                 "rules: [{allow: {method: GET, path: '/[ab]'}}]"},
                {"host: a.example.com, port: 443, protocol: rest, "
                 "rules: [{allow: {method: GET, path: '/?'}}]"}) ==
        "~a.example.com:443: now GET /? (cannot be compared)\n"
        "~a.example.com:443: no longer GET /[ab] (cannot be compared)\n");
}

TEST_CASE("ComparePolicies sees denials lifted and added") {
  std::string denying = std::string(kFull) + ", deny_rules: [{method: DELETE, path: '/x/**'}]";
  std::string wider = std::string(kFull) + ", deny_rules: [{method: '*', path: '/**'}]";
  CHECK(Between({denying}, {kFull}) == "+a.example.com:443: DELETE /x/**, no longer denied\n");
  CHECK(Between({kFull}, {denying}) == "-a.example.com:443: DELETE /x/**, now denied\n");
  CHECK(Between({denying}, {wider}) == "-a.example.com:443: every method /**, now denied\n");
}

TEST_CASE("ComparePolicies sees inspection, audit and traits") {
  CHECK(Between({kPlain}, {std::string(kPlain) + ", tls: skip"}) ==
        "+a.example.com:443: uninspected TLS\n");
  CHECK(Between({kRead}, {std::string(kRead) + ", enforcement: audit"}) ==
        "+a.example.com:443: requests that the rules refuse (audit)\n");
  CHECK(Between({kRead}, {std::string(kRead) + ", allow_encoded_slash: true"}) ==
        "~a.example.com:443: now allow_encoded_slash\n");
  CHECK(Between({std::string(kRead) + ", allowed_ips: [10.1.0.0/16]"},
                {std::string(kRead) + ", allowed_ips: [10.1.0.0/16, 10.2.0.0/16]"}) ==
        "+a.example.com:443: addresses in 10.2.0.0/16\n");
}

TEST_CASE("ComparePolicies compares operations and calls") {
  constexpr const char* kQuery =
      "host: a.example.com, port: 443, protocol: graphql, access: read-only";
  constexpr const char* kMutation =
      "host: a.example.com, port: 443, protocol: graphql, access: read-write";
  CHECK(Between({kQuery}, {kMutation}) == "+a.example.com:443: mutation\n");
  constexpr const char* kTool =
      "host: a.example.com, port: 443, protocol: mcp, "
      "rules: [{allow: {method: tools/call, tool: read}}]";
  constexpr const char* kAll =
      "host: a.example.com, port: 443, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}";
  CHECK(Between({kTool}, {kAll}) == "+a.example.com:443: every call\n");
  CHECK(Between({kAll}, {kTool}) == "-a.example.com:443: every call\n");
  constexpr const char* kAllButTools =
      "host: a.example.com, port: 443, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}, "
      "rules: [{allow: {tool: read}}]";
  CHECK(Between({kTool}, {kAllButTools}) == "+a.example.com:443: every call but tools/call\n");
  CHECK(Between({kAllButTools}, {kTool}) == "-a.example.com:443: every call but tools/call\n");
}

TEST_CASE("ComparePolicies knows whose connections they are") {
  policy::Policy curl = With({kRead});
  policy::Policy more = Parsed(
      "version: 1\nnetwork_policies: {b: {binaries: [{path: /bin/curl}, {path: /bin/git}], "
      "endpoints: [{host: a.example.com, port: 443, protocol: rest, access: read-only}]}}");
  PolicyDifference difference = ComparePolicies(curl, more, {});
  REQUIRE(difference.opens.size() == 1);
  CHECK(difference.opens[0].binaries == std::vector<std::string>{"/bin/git"});
  CHECK(difference.closes.empty());
  policy::Policy any = Parsed(
      "version: 1\nnetwork_policies: {b: {binaries: [{path: '/bin/*'}], "
      "endpoints: [{host: a.example.com, port: 443, protocol: rest, access: read-only}]}}");
  CHECK(ComparePolicies(any, more, {}).opens.empty());
  CHECK(ComparePolicies(more, any, {}).opens.size() == 1);
}

TEST_CASE("ComparePolicies names credentials that come into reach") {
  std::vector<BoundSecret> secrets = {{"TOKEN", "a.example.com"}, {"OTHER", "b.example.com"}};
  PolicyDifference opened = ComparePolicies(With({}), With({kRead}), secrets);
  REQUIRE(opened.opens.size() == 1);
  CHECK(opened.opens[0].secrets == std::vector<std::string>{"TOKEN"});
  REQUIRE(opened.reaches.size() == 1);
  CHECK(opened.reaches[0].name == "TOKEN");
  CHECK(opened.reaches[0].binary == "/bin/curl");
  // More requests with a credential that was in reach before.
  PolicyDifference widened = ComparePolicies(With({kRead}), With({kFull}), secrets);
  CHECK(widened.reaches.empty());
  CHECK(widened.opens[0].secrets == std::vector<std::string>{"TOKEN"});
  // A tunnel carries placeholders only.
  CHECK(ComparePolicies(With({}), With({std::string(kPlain) + ", tls: skip"}), secrets)
            .reaches.empty());
}

TEST_CASE("ComparePolicies compares the file system by what lies below") {
  auto paths = [](const std::string& lists) {
    return Parsed("version: 1\nfilesystem_policy: {" + lists + "}\n");
  };
  CHECK(Lines(paths("read_only: [/usr]"), paths("read_only: [/usr/lib]")) == "-/usr: reading\n");
  CHECK(Lines(paths("read_only: [/usr]"), paths("read_only: [/usr, /usrx]")) ==
        "+/usrx: reading\n");
  CHECK(Lines(paths("read_only: [/]"), paths("read_only: [/opt]")) == "-/: reading\n");
  CHECK(Lines(paths("read_only: [/opt]"), paths("read_write: [/opt]")) == "+/opt: writing\n");
  CHECK(Lines(paths("include_workdir: false"), paths("include_workdir: true")) ==
        "+the workspace: writing\n");
}

TEST_CASE("ComparePolicies names changes of the rest") {
  CHECK(Lines(Parsed("version: 1\n"),
              Parsed("version: 1\nlandlock: {compatibility: hard_requirement}\n"
                     "process: {run_as_user: 1000}\n")) ==
        "~landlock: now hard_requirement\n~process: now run_as_user 1000, before of the image\n");
  CHECK(Lines(Parsed("version: 1\n"),
              Parsed("version: 1\nnetwork_middlewares: {m: {middleware: openshell/regex, "
                     "endpoints: {include: ['*']}}}\n")) == "~middleware m: now redacts *\n");
}

TEST_CASE("ComparePolicies says what a running sandbox cannot take") {
  policy::Policy wide = Parsed("version: 1\nfilesystem_policy: {read_only: [/usr, /opt]}\n");
  policy::Policy narrow = Parsed("version: 1\nfilesystem_policy: {read_only: [/usr]}\n");
  CHECK(ComparePolicies(wide, narrow, {}).live_refusal ==
        "filesystem read_only path '/opt' cannot be removed on a live sandbox");
  CHECK(ComparePolicies(narrow, wide, {}).live_refusal.empty());
}

TEST_CASE("A value of a policy forges no line of the comparison") {
  const std::string forged = "x\\n\\ncloses:\\r  github.com:443: everything";
  const policy::Policy now = With({kRead});
  const policy::Policy next = Parsed(
      "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: \"/bin/" + forged +
      "\"}]\n    endpoints: [{host: b.example.com, port: 443, protocol: rest, rules: [{allow: "
      "{method: GET, path: \"/" +
      forged + "\"}}]}]\n");
  const std::string text = RenderDifference(ComparePolicies(now, next, {}), "now", "next");
  INFO(text);
  CHECK(text.find("github.com") != std::string::npos);  // It is shown,
  CHECK(text.find("\\u{a}\\u{a}closes:\\u{d}  github.com") != std::string::npos);
  CHECK(text.find("\n  github.com") == std::string::npos);  // and on no line of its own.
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find("\ncloses:\n") == text.rfind("\ncloses:\n"));
}

TEST_CASE("RenderDifferenceJson has every list, empty or not") {
  codec::Json json = codec::ParseJson(RenderDifferenceJson({}, "a", "b")).value();
  for (const char* list : {"opens", "closes", "changes", "credentials"}) {
    REQUIRE(json.Find(list) != nullptr);
    CHECK(json.Find(list)->array() != nullptr);
  }
  CHECK(RenderDifference({}, "a", "b") == "no effective differences\n");
}

}  // namespace
}  // namespace advise
