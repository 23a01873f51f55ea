// SPDX-License-Identifier: Apache-2.0
#include "report/wording.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

TEST_CASE("Quantities read as people write them") {
  CHECK(HumanCount(0) == "0");
  CHECK(HumanCount(999) == "999");
  CHECK(HumanCount(1234567) == "1,234,567");
  CHECK(HumanCount(-1234) == "-1,234");
  CHECK(HumanBytes(1023) == "1,023 B");
  CHECK(HumanBytes(1536) == "1.5 KiB");
  CHECK(HumanBytes(4294967296.0) == "4 GiB");
  CHECK(HumanBytes(-1e300) == "0 B");
  CHECK(HumanDuration(0.25) == "0.3 s");
  CHECK(HumanDuration(42) == "42 s");
  CHECK(HumanDuration(1200) == "20 min");
  CHECK(HumanDuration(185) == "3 min 5 s");
  CHECK(HumanDuration(5400) == "1 h 30 min");
  CHECK(HumanDuration(-1) == "0 s");
  CHECK(HumanDate(1795294532000) == "2026-11-21 20:55 UTC");
  CHECK(HumanDate(0).empty());
  CHECK(Plural(1, "file") == "1 file");
  CHECK(Plural(0, "file") == "0 files");
}

TEST_CASE("DescribeLimit says the unit once") {
  CHECK(DescribeLimit({"memory", 4294967296.0, 1073741824.0, "bytes", false}) == "1 GiB of 4 GiB");
  CHECK(DescribeLimit({"pids", 1024, 12, "processes", false}) == "12 of 1,024 processes");
  CHECK(DescribeLimit({"wall", 1200, 42, "s", false}) == "42 s of 20 min");
  CHECK(DescribeLimit({"cost", 2, 0.5, "usd", false}) == "$0.50 of $2.00");
  CHECK(DescribeLimit({"cpu", 1.5, std::nullopt, "cpus", false}) == "at most 1.5 cpus");
  CHECK(DescribeLimit({"idle", std::nullopt, 3, "s", false}) == "3 s, no limit");
}

TEST_CASE("DescribeAttempt shows the port where it says something") {
  CHECK(DescribeAttempt({"a.example", 443, "GET", "/x", ""}) == "GET a.example/x");
  CHECK(DescribeAttempt({"a.example", 8443, "PUT", "/x", ""}) == "PUT a.example:8443/x");
  CHECK(DescribeAttempt({"a.example", 22, "", "", ""}) == "connect to a.example:22");
}

TEST_CASE("DescribeAttempt says what the request carried") {
  advise::Denial denial{"a.example", 443, "POST", "/graphql", ""};
  denial.operations = {{"mutation", "", {"createIssue"}, "", "", ""}, {"", "", {}, "3f2a", "", ""}};
  CHECK(DescribeAttempt(denial) ==
        "POST a.example/graphql: mutation {createIssue}, persisted query 3f2a");
}

TEST_CASE("AllowRules gives each endpoint's line once, and nothing that breaks out of it") {
  DeniedRequest denied;
  denied.denial = {"a.example", 443, "POST", "/a\nevil: 1", ""};
  denied.denial.operations = {{"", "", {}, "", "ping", ""}};
  denied.allow_line = "rules: [{allow: {method: 'ping'}}]";
  std::vector<DeniedRequest> denials(4, denied);
  denials[1].allow_line += "\nevil: 1";
  denials[2].allow_line.clear();
  CHECK(AllowRules(denials, 5) ==
        std::vector<std::string>{"# a.example:443/a evil: 1\n" + denied.allow_line + "\n"});
  CHECK(AllowRules(denials, 0).empty());
  CHECK(AllowLines(denials).empty());
}

TEST_CASE("DescribePolicy says where the rules came from") {
  CHECK(DescribePolicy({"default", "", "", "", ""}) == "built-in default");
  CHECK(DescribePolicy({"repository", "p.yml", "main", "0b4f3c2a1d", ""}) ==
        "p.yml at main (0b4f3c2)");
  CHECK(DescribePolicy({"file", "/x/p.yml", "", "", ""}) == "/x/p.yml");
}

TEST_CASE("AllowLines gives each line once and only lines that can be pasted") {
  std::vector<DeniedRequest> denials(4);
  denials[0].allow_line = "a.example:443:read-only";
  denials[1].allow_line = "a.example:443:read-only";
  denials[2].allow_line = "b.example:443\"\n  - \"*:443:full";
  CHECK(AllowLines(denials) == std::vector<std::string>{"a.example:443:read-only"});
}

TEST_CASE("DescribeUsage counts cached tokens as read, and says when sums are partial") {
  UsageRecord usage;
  CHECK(DescribeUsage(usage).empty());
  usage.turns = 1;
  usage.input_tokens = 100;
  usage.cache_read_tokens = 900;
  usage.output_tokens = 20;
  CHECK(DescribeUsage(usage) ==
        "1 turn, 1,000 tokens in (900 from cache), 20 out (incomplete: the agent's output ended "
        "early)");
  usage.complete = true;
  CHECK(DescribeUsage(usage) == "1 turn, 1,000 tokens in (900 from cache), 20 out");
  usage.agent_tokens = 1020;
  CHECK(DescribeUsage(usage) == "1 turn, 1,000 tokens in (900 from cache), 20 out");
  usage.agent_tokens = 920;
  CHECK(DescribeUsage(usage) ==
        "1 turn, 1,000 tokens in (900 from cache), 20 out (the agent counts 100 less)");
  usage.agent_tokens.reset();
  CHECK(DescribeCost(usage).empty());
  usage.cost_usd = 0.0224;
  usage.cost_source = "gateway";
  CHECK(DescribeCost(usage) == "$0.0224");
  usage.agent_cost_usd = 0.02241;
  CHECK(DescribeCost(usage) == "$0.0224");
  usage.agent_cost_usd = 0.06;
  CHECK(DescribeCost(usage) == "$0.0224 (the agent reports $0.0600)");
  usage.cost_usd.reset();
  usage.priced_cost_usd = 0.01;
  usage.unpriced_models = {"x", "y"};
  CHECK(DescribeCost(usage) ==
        "cost unknown: no price for x, y, $0.0100 for the rest (the agent reports $0.0600)");
  usage.cost_source = "agent";
  usage.cost_usd = 0.06;
  CHECK(DescribeCost(usage) == "$0.0600 (reported by the agent)");
}

TEST_CASE("A repository's pages are where its forge has them") {
  const std::string sha(40, 'a');
  const WebPages github = {"https://f.example/o/r", "github"};
  CHECK(github.Commit(sha) == "https://f.example/o/r/commit/" + sha);
  CHECK(github.Proposal(7) == "https://f.example/o/r/pull/7");
  CHECK(github.File(sha, "a b/\"c", 3) == "https://f.example/o/r/blob/" + sha + "/a%20b/%22c#L3");
  const WebPages gitea = {"http://f.example/o/r", "gitea"};
  CHECK(gitea.Proposal(7) == "http://f.example/o/r/pulls/7");
  CHECK(gitea.File(sha, "a", 0) == "http://f.example/o/r/src/commit/" + sha + "/a");
  const WebPages gitlab = {"https://f.example/g/o/r", "gitlab"};
  CHECK(gitlab.Commit(sha) == "https://f.example/g/o/r/-/commit/" + sha);
  CHECK(gitlab.Proposal(7) == "https://f.example/g/o/r/-/merge_requests/7");
  for (const char* url : {"", "javascript:x", "https://a b"}) {
    const WebPages none = {url, "github"};
    CHECK((none.Commit(sha) + none.Proposal(1) + none.File(sha, "a", 1)).empty());
  }
  CHECK(github.Commit("main").empty());
  CHECK(github.Proposal(0).empty());
}

TEST_CASE("A repository's pages are found in the address of its run") {
  EventRecord event;
  event.forge = "gitea";
  event.repository = "o/r";
  event.run_url = "https://f.example/below/o/r/actions/runs/3";
  CHECK(PagesOf(event).url == "https://f.example/below/o/r");
  event.run_url = "https://f.example/other/actions/runs/3";
  CHECK(PagesOf(event).url.empty());
  CHECK(PagesOf(EventRecord()).url.empty());
}

}  // namespace
}  // namespace report
