// SPDX-License-Identifier: Apache-2.0
#include "advise/cover.h"

#include <catch2/catch.hpp>

namespace advise {
namespace {

constexpr Cover kYes = Cover::kYes;
constexpr Cover kNo = Cover::kNo;
constexpr Cover kUnknown = Cover::kUnknown;

TEST_CASE("HostCovers follows labels") {
  CHECK(HostCovers("*.example.com", "api.example.com") == kYes);
  CHECK(HostCovers("api.example.com", "*.example.com") == kNo);
  CHECK(HostCovers("*.example.com", "a.b.example.com") == kNo);
  CHECK(HostCovers("**.example.com", "*.example.com") == kYes);
  CHECK(HostCovers("**.example.com", "*.b.example.com") == kYes);
  CHECK(HostCovers("*.example.com", "**.example.com") == kNo);
  CHECK(HostCovers("*.example.com", "*-api.example.com") == kYes);
  CHECK(HostCovers("*-api.example.com", "*.example.com") == kNo);
  CHECK(HostCovers("*.s3.*.example.com", "a.s3.*.example.com") == kYes);
  CHECK(HostCovers("*.example.com", "*.example.org") == kNo);
  CHECK(HostCovers("", "*.example.com") == kYes);
  CHECK(HostCovers("*.example.com", "") == kNo);
  CHECK(HostCovers("*.[ab].example.com", "*.a.example.com") == kUnknown);
}

TEST_CASE("GlobCovers knows segments from depths") {
  CHECK(GlobCovers("**", "/a/*", '/') == kYes);
  CHECK(GlobCovers("/**", "/a/**", '/') == kYes);
  CHECK(GlobCovers("/a/**", "/**", '/') == kNo);
  CHECK(GlobCovers("/a/**", "/a/*", '/') == kYes);
  CHECK(GlobCovers("/a/*", "/a/**", '/') == kNo);
  CHECK(GlobCovers("/a/*/*/*", "/a/**", '/') == kNo);
  CHECK(GlobCovers("/a/**", "/a", '/') == kNo);
  CHECK(GlobCovers("/repos/*/issues", "/repos/x/issues", '/') == kYes);
  CHECK(GlobCovers("/repos/*/issues", "/repos/x*/issues", '/') == kYes);
  CHECK(GlobCovers("/repos/x*/issues", "/repos/*/issues", '/') == kNo);
  CHECK(GlobCovers("/**/x", "/a/**/x", '/') == kYes);
  CHECK(GlobCovers("/a/**/x", "/**/x", '/') == kNo);
  CHECK(GlobCovers("/**/b/**", "/a/**/b/**", '/') == kYes);
}

TEST_CASE("GlobCovers looks into groups, and says when it cannot know") {
  CHECK(GlobCovers("/{a,b}/*", "/a/*", '/') == kYes);
  CHECK(GlobCovers("/a/*", "/{a,b}/*", '/') == kNo);
  CHECK(GlobCovers("/*/x", "/{a,b}/x", '/') == kYes);
  CHECK(GlobCovers("/{a,{b,c}}", "/{b,a}", '/') == kYes);
  CHECK(GlobCovers("/*x", "/{a,{b,c}}x", '/') == kUnknown);
  CHECK(GlobCovers("/[ab]", "/a", '/') == kYes);
  CHECK(GlobCovers("/[ab]", "/[a]", '/') == kUnknown);
  CHECK(GlobCovers("/a?", "/a?", '/') == kYes);
}

TEST_CASE("BinaryCovers takes a pattern for one only when it has a star") {
  CHECK(BinaryCovers("/usr/bin/*", "/usr/bin/git") == kYes);
  CHECK(BinaryCovers("/usr/bin/*", "/usr/bin/x/git") == kNo);
  CHECK(BinaryCovers("/**", "/usr/bin/*") == kYes);
  CHECK(BinaryCovers("the agent", "/**") == kYes);
  CHECK(BinaryCovers("/**", "the agent") == kYes);
  CHECK(BinaryCovers("/usr/bin/*", "the agent") == kNo);
  CHECK(BinaryCovers("/usr/bin/[x", "/usr/bin/[x") == kYes);
  CHECK(BinaryCovers("/usr/bin/git", "/usr/bin/*") == kNo);
}

policy::HttpRule Rule(std::string method, std::string path) {
  policy::HttpRule rule;
  rule.method = std::move(method);
  rule.path = std::move(path);
  return rule;
}

TEST_CASE("RuleCovers asks for method, path and query alike") {
  policy::HttpRule get = Rule("GET", "/a/**");
  CHECK(RuleCovers(policy::Protocol::kRest, Rule("*", "**"), get) == kYes);
  CHECK(RuleCovers(policy::Protocol::kRest, get, Rule("HEAD", "/a/b")) == kYes);
  CHECK(RuleCovers(policy::Protocol::kRest, get, Rule("*", "/a/b")) == kNo);
  CHECK(RuleCovers(policy::Protocol::kRest, Rule("GET", "/**"), Rule("GET", "**")) == kYes);
  CHECK(RuleCovers(policy::Protocol::kRest, Rule("*", "/**"), Rule("OPTIONS", "**")) == kNo);
  policy::HttpRule tagged = get;
  tagged.query = {{"tag", {"v1", "v2"}}};
  CHECK(RuleCovers(policy::Protocol::kRest, get, tagged) == kYes);
  CHECK(RuleCovers(policy::Protocol::kRest, tagged, get) == kNo);
  policy::HttpRule wider = get;
  wider.query = {{"tag", {"v*"}}};
  CHECK(RuleCovers(policy::Protocol::kRest, wider, tagged) == kYes);
  CHECK(RuleCovers(policy::Protocol::kRest, tagged, wider) == kNo);
}

TEST_CASE("RuleCovers compares operations and calls") {
  policy::HttpRule viewer;
  viewer.operation_type = "query";
  viewer.fields = {"viewer"};
  policy::HttpRule any;
  any.operation_type = "*";
  CHECK(RuleCovers(policy::Protocol::kGraphql, any, viewer) == kYes);
  CHECK(RuleCovers(policy::Protocol::kGraphql, viewer, any) == kNo);
  CHECK(RuleCovers(policy::Protocol::kWebSocket, Rule("*", "**"), viewer) == kNo);
  policy::HttpRule read;
  read.method = "tools/call";
  read.tool = "read_*";
  policy::HttpRule status = read;
  status.tool = "read_status";
  CHECK(RuleCovers(policy::Protocol::kMcp, read, status) == kYes);
  CHECK(RuleCovers(policy::Protocol::kMcp, status, read) == kNo);
  CHECK(RuleCovers(policy::Protocol::kMcp, Rule("tools/*", ""), read) == kYes);
  CHECK(RuleCovers(policy::Protocol::kMcp, read, Rule("tools/call", "")) == kNo);
}

}  // namespace
}  // namespace advise
