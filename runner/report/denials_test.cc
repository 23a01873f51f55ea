// SPDX-License-Identifier: Apache-2.0
#include "report/denials.h"

#include <catch2/catch.hpp>

#include "report/test_events.h"
#include "report/wording.h"

namespace report {
namespace {

DenialList DenialsOf(std::string_view jsonl) {
  return FromEvents([](const std::string& directory) { return ReadDenials(directory); }, jsonl);
}

std::string Line(const std::string& host, const std::string& members = "",
                 const std::string& action = "2", const std::string& kind = "4002") {
  return R"({"class_uid":)" + kind + R"(,"action_id":)" + action +
         R"(,"status_detail":"detail","unmapped":{"decision":"denied","host":")" + host +
         R"(","port":443)" + members + "}}\n";
}

TEST_CASE("Equal denied requests are counted together, in the order they came") {
  const std::string get =
      R"(,"method":"GET","path":"/a","binary":"/usr/bin/curl","reason":"no rule")";
  const DenialList list =
      DenialsOf(Line("b.example", get) + Line("a.example", get) + Line("b.example", get) +
                Line("b.example", R"(,"method":"POST","path":"/a","binary":"/usr/bin/curl")") +
                Line("b.example", "", "2", "4001"));
  REQUIRE(list.denials.size() == 4);
  CHECK(list.dropped == 0);
  CHECK(list.denials[0].denial.host == "b.example");
  CHECK(list.denials[0].denial.port == 443);
  CHECK(list.denials[0].denial.method == "GET");
  CHECK(list.denials[0].denial.path == "/a");
  CHECK(list.denials[0].denial.binary == "/usr/bin/curl");
  CHECK(list.denials[0].reason == "no rule");
  CHECK(list.denials[0].count == 2);
  CHECK_FALSE(list.denials[0].allow_line.empty());
  CHECK(list.denials[1].denial.host == "a.example");
  CHECK(list.denials[2].reason == "detail");
  CHECK(list.denials[3].denial.method.empty());
}

TEST_CASE("What the policy did not decide has no line that would allow it") {
  const DenialList list =
      DenialsOf(Line("a.example", R"(,"engine":"opa")") + Line("b.example", R"(,"engine":"ssrf")") +
                Line("c.example", R"(,"engine":"credentials")"));
  REQUIRE(list.denials.size() == 3);
  CHECK_FALSE(list.denials[0].allow_line.empty());
  CHECK(list.denials[1].allow_line.empty());
  CHECK(list.denials[2].allow_line.empty());
  CHECK(list.denials[0].by_policy);
  CHECK_FALSE(list.denials[1].by_policy);
}

TEST_CASE("A request that is over the run's budget does not count as refused") {
  const std::string budget = R"(,"engine":"budget","reason":")";
  const DenialList list =
      DenialsOf(Line("a.example", budget + R"(the run's budget is used up: 10 of 10 tokens")") +
                Line("a.example", budget + R"(the model 'x' is not one that this run may use")"));
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].reason == "the model 'x' is not one that this run may use");
}

TEST_CASE("What a deny rule refused has no line that would allow it, and was the policy's answer") {
  const DenialList list =
      DenialsOf(Line("a.example", R"(,"method":"GET","path":"/x","engine":"l7",)"
                                  R"("reason":"GET /x blocked by deny rule",)"
                                  R"("deny_rule":"p.yml:7:9")"));
  REQUIRE(list.denials.size() == 1);
  CHECK(DescribeRefusal(list.denials[0]) == "GET /x blocked by deny rule (p.yml:7:9)");
  CHECK(list.denials[0].allow_line.empty());
  CHECK(list.denials[0].by_policy);
}

TEST_CASE("What was judged by operation is told by it, with the rule that allows it") {
  const std::string request = R"(,"method":"POST","path":"/a","protocol":)";
  const std::string graphql = request + R"("graphql","engine":"l7-graphql")";
  const std::string create =
      R"(,"operations":[{"operation_type":"mutation","fields":["createIssue"]}])";
  const std::string tool = request + R"("mcp","engine":"l7-mcp","operations":[{"method":)";
  const DenialList list =
      DenialsOf(Line("a.example", graphql + create) + Line("a.example", graphql + create) +
                Line("a.example", graphql + R"(,"operations":[{"persisted_query":"3f2a"}])") +
                Line("a.example", graphql + R"(,"reason":"GraphQL request rejected: x")") +
                Line("a.example", tool + R"("tools/call","tool":"x"}],"ancestors":["/bin/sh"])"));
  REQUIRE(list.denials.size() == 4);
  CHECK(list.dropped == 0);
  CHECK(list.denials[0].count == 2);
  CHECK(list.denials[0].allow_line ==
        "rules: [{allow: {operation_type: mutation, fields: ['createIssue']}}]");
  CHECK(list.denials[1].denial.operations.at(0).persisted_query == "3f2a");
  CHECK_FALSE(list.denials[1].allow_line.empty());
  CHECK(list.denials[2].allow_line.empty());
  CHECK(list.denials[3].allow_line == "rules: [{allow: {method: 'tools/call', tool: 'x'}}]");
  CHECK(list.denials[3].denial.ancestors == std::vector<std::string>{"/bin/sh"});
}

TEST_CASE("A tool of a model's provider is told by its kind, with the key that allows it") {
  const std::string ask = R"(,"method":"POST","path":"/v1/messages","protocol":"hosted-tools",)"
                          R"("engine":"hosted-tools","operations":[{"method":"hosted_tools",)";
  const DenialList list =
      DenialsOf(Line("a.example", ask + R"("tool":"web_search","fields":["docs.example"]}])") +
                Line("b.example", ask + R"("tool":"type=openrouter:web_search"}])") +
                Line("c.example", ask + R"("tool":"type=x'\n::error::y"}])"));
  REQUIRE(list.denials.size() == 3);
  CHECK(list.denials[0].allow_line == "hosted_tools: [web_search: {domains: [docs.example]}]");
  CHECK(list.denials[1].allow_line == "hosted_tools: ['type=openrouter:web_search']");
  CHECK(list.denials[2].allow_line.empty());
  CHECK(AllowLines(list.denials).empty());
  CHECK(AllowRules(list.denials, 9).size() == 2);
}

TEST_CASE("A name that is no plain word is kept for the report, and no rule is made of it") {
  const std::string call = R"(,"method":"POST","path":"/a","protocol":"json-rpc",)"
                           R"("engine":"l7-jsonrpc","operations":)";
  const DenialList list =
      DenialsOf(Line("a.example", call + R"([{"method":"x'}\n::error::y"}])") +
                Line("b.example", call + R"([{"method":"*"}])") +
                Line("c.example", call + R"([{"method":7},{"fields":"x"},[]])") +
                Line("d.example", call + R"("x")"));
  REQUIRE(list.denials.size() == 4);
  CHECK(list.denials[0].denial.operations.at(0).method == "x'}\n::error::y");
  for (const DeniedRequest& denied : list.denials) CHECK(denied.allow_line.empty());
}

TEST_CASE("A request that was refused for two reasons is told twice, each with what helps") {
  const std::string request = R"(,"method":"GET","path":"/a","engine":)";
  const DenialList list =
      DenialsOf(Line("a.example", request + R"("identity","reason":"the program is not known")") +
                Line("a.example", request + R"("opa","reason":"not allowed by any policy")") +
                Line("a.example", request + R"("opa","reason":"not allowed by any policy")"));
  REQUIRE(list.denials.size() == 2);
  CHECK(list.denials[0].allow_line.empty());
  CHECK(list.denials[1].count == 2);
  CHECK(list.denials[1].allow_line == "a.example:443:read-only");
}

TEST_CASE("What reads has its host's line, what writes its own rule, a name its host's first") {
  const DenialList list =
      DenialsOf(Line("a.example", R"(,"method":"GET","path":"/a")") +
                Line("a.example", R"(,"method":"DELETE","path":"/a")") +
                Line("a.example", R"(,"method":"POST","path":"/a")") +
                Line("a.example", R"(,"engine":"dns")") + Line("b.example", R"(,"engine":"dns")") +
                Line("10.200.0.1") + Line("169.254.169.254") + Line("metadata.google.internal"));
  std::vector<std::string> lines;
  for (const DeniedRequest& denied : list.denials) lines.push_back(denied.allow_line);
  CHECK(lines == std::vector<std::string>{
                     "a.example:443:read-only", "rules: [{allow: {method: 'DELETE', path: '/a'}}]",
                     "rules: [{allow: {method: 'POST', path: '/a'}}]", "a.example:443:read-only",
                     "b.example:443:read-only", "", "", ""});
  CHECK(AllowLines(list.denials) ==
        std::vector<std::string>{"a.example:443:read-only", "b.example:443:read-only"});
}

TEST_CASE(
    "A message that no rule allows has a line, and one that is none of its protocol has not") {
  const std::string text = R"(,"method":"WEBSOCKET_TEXT","path":"/a","protocol":"websocket",)"
                           R"("engine":"l7-websocket","reason":)";
  const DenialList list =
      DenialsOf(Line("a.example", text + R"("WEBSOCKET_TEXT /a not permitted by policy")") +
                Line("b.example", text + R"("GraphQL request rejected: x")"));
  REQUIRE(list.denials.size() == 2);
  CHECK(list.denials[0].allow_line.starts_with("rules: [{allow: {method: 'GET', path: '/a'}}, "));
  CHECK(list.denials[1].allow_line.empty());
}

TEST_CASE(
    "What was no request is named by its protocol, and only a name has a line that allows it") {
  const std::string udp = R"({"class_uid":4001,"action_id":2,"connection_info":{"protocol_name":)"
                          R"("udp"},"unmapped":{"host":"8.8.8.8","port":443,"engine":"nftables"}})";
  const std::string icmp = R"({"class_uid":4001,"action_id":2,"connection_info":{"protocol_name":)"
                           R"("icmp"},"unmapped":{"host":"8.8.8.8","port":0,"engine":"nftables"}})";
  const std::string name = R"({"class_uid":4001,"action_id":2,"unmapped":{"host":"a.example",)"
                           R"("port":53,"engine":"dns"}})";
  const DenialList list = DenialsOf(udp + "\n" + icmp + "\n" + name + "\n");
  REQUIRE(list.denials.size() == 3);
  CHECK(list.denials[0].denial.method == "UDP");
  CHECK(list.denials[1].denial.method == "ICMP");
  CHECK(list.denials[2].denial.method == "DNS");
  CHECK(list.denials[0].allow_line.empty());
  CHECK(list.denials[1].allow_line.empty());
  CHECK(list.denials[2].allow_line == "a.example:443:read-only");
  CHECK(list.denials[2].by_policy);
}

TEST_CASE("Only what was denied on the network is a denied request") {
  const DenialList list =
      DenialsOf(Line("a.example", "", "1") + Line("a.example", "", "3") +
                Line("a.example", "", "2", "6002") + "{\"class_uid\":4001}\n\n");
  CHECK(list.denials.empty());
  CHECK(list.dropped == 0);
}

TEST_CASE("Odd lines are skipped and counted") {
  const DenialList list = DenialsOf(
      "not json\n[]\n" + Line("", "") + Line("a b") + Line("x\\\"y") + Line("a.example\\u001b") +
      Line(std::string(300, 'a')) + Line("a.example", R"(,"method":"get it")") +
      Line("a.example", R"(,"method":"GET","path":"x")") +
      Line("a.example", R"(,"method":"GET","path":"/\u0007")") +
      R"({"class_uid":4001,"action_id":2})"
      "\n" +
      R"({"class_uid":4001,"action_id":2,"unmapped":{"host":"a.example","port":70000}})"
      "\n" +
      R"({"class_uid":4001,"action_id":2,"unmapped":{"host":"a.example","port":"443"}})"
      "\n" +
      Line("ok.example"));
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].denial.host == "ok.example");
  CHECK(list.dropped == 13);
}

TEST_CASE(
    "No name that the agent gives its program or its method keeps a denial out of the report") {
  const DenialList list = DenialsOf(
      Line("a.example", R"(,"method":"dElete","path":"/a","binary":"/tmp/a\n::error::b")") +
      Line("b.example", R"(,"method":"*a1","path":"/a","binary":"/bin/b")") +
      Line("c.example", R"(,"method":")" + std::string(64, 'm') + R"(","path":"/a")"));
  REQUIRE(list.denials.size() == 3);
  CHECK(list.dropped == 0);
  CHECK(list.denials[0].denial.method == "DELETE");
  CHECK(list.denials[0].denial.binary.find('\n') == std::string::npos);
  CHECK(list.denials[0].denial.binary.starts_with("/tmp/a"));
  CHECK(list.denials[1].denial.method == "_A_");
  CHECK(list.denials[2].denial.method == std::string(32, 'M'));
}

TEST_CASE("At most a thousand different requests are kept, and those are still counted") {
  std::string lines;
  for (int i = 0; i < 1005; ++i) lines += Line("h" + std::to_string(i) + ".example");
  lines += Line("h0.example");
  const DenialList list = DenialsOf(lines);
  CHECK(list.denials.size() == 1000);
  CHECK(list.dropped == 5);
  CHECK(list.denials[0].count == 2);
}

TEST_CASE("A target that no policy can open has no line that would allow it") {
  const DenialList list = DenialsOf(Line("169.254.169.254"));
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].allow_line.empty());
}

TEST_CASE("Connections that failed are counted together, and a hostile host is none") {
  auto failed = [](const std::string& host, const std::string& reason) {
    return R"({"class_uid":4001,"unmapped":{"decision":"failed","host":")" + host +
           R"(","port":443,"reason":")" + reason + "\"}}\n";
  };
  const DenialList list =
      DenialsOf(failed("a.example", "no address") + failed("a.example", "no address") +
                failed("a.example", "refused") + failed("<b>", "x") + Line("a.example"));
  CHECK(list.denials.size() == 1);
  REQUIRE(list.failures.size() == 2);
  CHECK(list.failures[0].host == "a.example");
  CHECK(list.failures[0].port == 443);
  CHECK(list.failures[0].reason == "no address");
  CHECK(list.failures[0].count == 2);
  CHECK(list.failures[1].count == 1);
}

TEST_CASE("A host in which the gateway masked a secret is a denied request that no line allows") {
  const DenialList list = DenialsOf(Line("[CREDENTIAL].example.com"));
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].allow_line.empty());
  CHECK(DenialsOf(Line("[x].example.com")).denials.empty());
}

TEST_CASE("What was recorded before a byte is not read") {
  const std::string before = Line("a.example");
  const DenialList list = FromEvents(
      [&](const std::string& directory) {
        CHECK(EventBytes(directory) == static_cast<int64_t>(before.size() * 2));
        return ReadDenials(directory, static_cast<int64_t>(before.size()));
      },
      before + Line("b.example"));
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].denial.host == "b.example");
  CHECK(EventBytes("/nonexistent") == 0);
}

TEST_CASE("A directory without events has no denied requests") {
  CHECK(ReadDenials("/nonexistent").value().denials.empty());
}

TEST_CASE("Allowed requests are counted, equal ones together") {
  const auto allowed = [](const std::string& path, int pid) {
    return R"({"class_uid":4002,"unmapped":{"decision":"allowed","host":"a.example","port":443,)"
           R"("method":"GET","path":")" +
           path + R"(","binary":"/usr/bin/curl","pid":)" + std::to_string(pid) +
           R"(,"ancestors":[]},"action_id":1,"action":"Allowed"})" + "\n";
  };
  std::string events = allowed("/x", 7) + allowed("/x", 8) + allowed("/y", 7) +
                       allowed(R"(/\",\"pid\":1,\"x\":\")", 7) + allowed(R"(/\u001b[2J)", 7);
  DenialList list = DenialsOf(events);
  REQUIRE(list.allowed.size() == 4);
  CHECK(list.allowed[0].path == "/x");
  CHECK(list.allowed[0].count == 2);
  CHECK(list.allowed[2].path == R"(/","pid":1,"x":")");
  CHECK(list.allowed[3].path == "/");
  CHECK(list.denials.empty());
  for (int i = 0; i < 1500; ++i) events += allowed("/" + std::to_string(i), 7);
  list = DenialsOf(events);
  CHECK(list.allowed.size() == 1000);
  CHECK(list.allowed_dropped == 504);
}

}  // namespace
}  // namespace report
