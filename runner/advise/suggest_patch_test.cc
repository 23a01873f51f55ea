// SPDX-License-Identifier: Apache-2.0
// That `git apply` takes the patches is tests/policy/suggest_test.py.
#include "advise/suggest_patch.h"

#include <catch2/catch.hpp>

#include "advise/patched_text.h"
#include "policy/decide/test_decide.h"

namespace advise {
namespace {

policy::ParseContext Context() {
  policy::ParseContext context;
  context.file = "p.yml";
  return context;
}

bool Allows(const std::string& text, const Denial& denial) {
  policy::Policy policy = policy::ParsePolicy(text, Context()).value().policy;
  policy::Caller caller;
  caller.binary = denial.binary;
  caller.agent = true;
  return policy::DecideConnection(policy, denial.host, denial.port, caller).allowed &&
         (denial.method.empty() || policy::DecideRequest(policy, denial.host, denial.port, caller,
                                                         {denial.method, denial.path, ""})
                                       .allowed);
}

const Denial kPost = {"api.example.com", 443, "POST", "/a/[b]", "/bin/curl"};
const Denial kOther = {"api.example.com", 443, "POST", "/a/c", "/bin/curl"};
const Denial kConnect = {"new.example.com", 8443, "", "", "/bin/git"};

constexpr const char* kPolicy =
    "version: 1\n"
    "network_policies:\n"
    "    api:  # Ours.\n"
    "        endpoints:\n"
    "            - {host: api.example.com, port: 443, protocol: rest, access: read-only}\n"
    "        binaries: [{path: /bin/curl}]\n"
    "\n"
    "# The rest.\n"
    "landlock: {compatibility: best_effort}\n";

TEST_CASE("SuggestPatch adds policies that allow what was refused, and nothing else") {
  SuggestedPatch suggested = SuggestPatch(kPolicy, Context(), {kPost, kConnect, kPost}).value();
  CHECK(suggested.notes.empty());
  CHECK(Allows(suggested.text, kPost));
  CHECK(Allows(suggested.text, kConnect));
  CHECK_FALSE(Allows(suggested.text, kOther));
  CHECK_FALSE(Allows(suggested.text, {"api.example.com", 443, "POST", "/a/[b]", "/bin/wget"}));
  CHECK(suggested.patch.starts_with("--- a/p.yml\n+++ b/p.yml\n@@ -4,6 +4,"));
  CHECK(suggested.patch.find("+    allow_api_example_com_443:\n") != std::string::npos);
}

TEST_CASE("SuggestPatch says nothing about what the policy allows by now") {
  SuggestedPatch suggested =
      SuggestPatch(kPolicy, Context(), {{"api.example.com", 443, "GET", "/x", "/bin/curl"}})
          .value();
  CHECK(suggested.patch.empty());
  CHECK(suggested.notes.empty());
}

TEST_CASE("SuggestPatch makes the block that the file does not have") {
  for (const char* text : {"version: 1\n", "version: 1", "version: 1\nnetwork_policies:\n",
                           "network_policies:\n\nversion: 1\n"}) {
    SuggestedPatch suggested = SuggestPatch(text, Context(), {kPost}).value();
    CHECK(Allows(suggested.text, kPost));
    CHECK_FALSE(Allows(suggested.text, kOther));
  }
}

TEST_CASE("SuggestPatch adds lines to the short form for what reads, and none for a write") {
  const char* text = "endpoints:\n  - a.example.com:443:read-only\ndefaults: none\n";
  SuggestedPatch suggested =
      SuggestPatch(text, Context(), {kConnect, kOther, {"a.example.com", 443, "GET", "/", "/x"}})
          .value();
  CHECK_FALSE(Allows(suggested.text, kOther));
  CHECK(Allows(suggested.text, kConnect));
  CHECK(suggested.text.find("api.example.com") == std::string::npos);
  REQUIRE(suggested.notes.size() == 1);
  CHECK(suggested.notes[0].find("agentic-ci policy export --to openshell") != std::string::npos);
  CHECK(suggested.text.find("\n  - \"new.example.com:8443:read-only\"") != std::string::npos);
  CHECK_FALSE(SuggestPatch("", Context(), {kOther}).ok());  // Its patch would open the defaults.
  CHECK(Allows(SuggestPatch("defaults: none\n", Context(), {kConnect}).value().text, kConnect));
}

TEST_CASE("SuggestPatch agrees with the endpoints that are there") {
  std::string policy =
      "version: 1\nnetwork_policies:\n  api:\n    binaries: [{path: /bin/curl}]\n    endpoints:\n"
      "      - {host: '*.example.com', port: 443, protocol: rest, access: read-only,\n"
      "         allow_encoded_slash: true, allowed_ips: [10.1.0.0/16]}\n"
      "  allow_api_example_com_443: {}\n";
  SuggestedPatch suggested = SuggestPatch(policy, Context(), {kPost}).value();
  CHECK(Allows(suggested.text, kPost));
  CHECK(suggested.text.find("\n  allow_api_example_com_443_2:\n") != std::string::npos);
}

TEST_CASE("SuggestPatch says which denials no addition helps, and why") {
  std::string denying =
      "version: 1\nnetwork_policies:\n  api:\n    binaries: [{path: /bin/curl}]\n    endpoints:\n"
      "      - {host: api.example.com, port: 443, protocol: rest, access: full,\n"
      "         deny_rules: [{method: POST, path: '/a/**'}]}\n";
  SuggestedPatch suggested = SuggestPatch(denying, Context(), {kOther}).value();
  CHECK(suggested.patch.empty());
  REQUIRE(suggested.notes.size() == 1);
  CHECK(suggested.notes[0] ==
        "POST /a/c at api.example.com:443 by /bin/curl: no addition would allow it: POST /a/c "
        "blocked by "
        "deny rule (p.yml:7:23)");
}

TEST_CASE("SuggestPatch adds no rule that would not help") {
  std::string denying =
      "version: 1\nnetwork_policies:\n  api:\n    binaries: [{path: /bin/curl}]\n    endpoints:\n"
      "      - {host: api.example.com, port: 443, protocol: rest, access: read-only,\n"
      "         deny_rules: [{method: POST, path: '/a/*b*'}]}\n";
  SuggestedPatch suggested = SuggestPatch(denying, Context(), {kPost, kOther}).value();
  CHECK(Allows(suggested.text, kOther));
  CHECK(suggested.notes.size() == 1);
  CHECK(suggested.text.find("'/a/c'") != std::string::npos);
  CHECK(suggested.patch.find("/a/[") == std::string::npos);
}

TEST_CASE("SuggestPatch opens no path whose calls are judged one by one") {
  for (const char* rest :
       {"protocol: graphql, access: read-only", "protocol: json-rpc, rules: [{allow: {method: a}}]",
        "protocol: mcp, rules: [{allow: {method: initialize}}]"}) {
    std::string policy =
        "version: 1\nnetwork_policies:\n  api:\n    binaries: [{path: /bin/curl}]\n"
        "    endpoints:\n      - {host: api.example.com, port: 443, path: /a/c, " +
        std::string(rest) + "}\n";
    SuggestedPatch suggested = SuggestPatch(policy, Context(), {kOther}).value();
    CHECK(suggested.patch.empty());
    REQUIRE(suggested.notes.size() == 1);
    CHECK(suggested.notes[0] ==
          "POST /a/c at api.example.com:443 by /bin/curl: the request body decides here: add a "
          "rule to "
          "p.yml:6:9");
  }
}

TEST_CASE("SuggestPatch refuses a file that no line can be added to") {
  Result<SuggestedPatch> patch =
      SuggestPatch("version: 1\nnetwork_policies: {a: {}}\n", Context(), {kPost});
  REQUIRE_FALSE(patch.ok());
  CHECK(patch.error().what ==
        "p.yml:2:1: error: 'network_policies' is a list in brackets: no line can be added");
  CHECK_FALSE(SuggestPatch("version: 2\n", Context(), {kPost}).ok());
}

// The patch of a text whose lines in front of `before` are more.
std::string PatchOf(const std::string& path, const std::string& text, size_t before,
                    const std::vector<std::string>& lines) {
  PatchedText patched(text);
  patched.Insert(before, lines);
  return patched.RenderPatch(path);
}

TEST_CASE("PatchedText is a unified diff at every place of a text") {
  CHECK(PatchOf("./p", "a\nb\n", 1, {"x"}) == "--- a/p\n+++ b/p\n@@ -1,2 +1,3 @@\n a\n+x\n b\n");
  CHECK(PatchOf("/p", "", 0, {"x"}) == "--- a/p\n+++ b/p\n@@ -0,0 +1,1 @@\n+x\n");
  CHECK(PatchOf("p", "a", 1, {"x"}) ==
        "--- a/p\n+++ b/p\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+x\n");
  CHECK(PatchOf("p", "1\n2\n3\n4\n5\n", 5, {"x", "y"}) ==
        "--- a/p\n+++ b/p\n@@ -3,3 +3,5 @@\n 3\n 4\n 5\n+x\n+y\n");
}

TEST_CASE("PatchedText gives changes that are near one hunk, and others their own") {
  PatchedText patched("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13");
  patched.Replace(0, "one");
  patched.Insert(4, {"new"});
  patched.Replace(13, "thirteen");
  CHECK(patched.RenderPatch("p") ==
        "--- a/p\n+++ b/p\n@@ -1,7 +1,8 @@\n-1\n+one\n 2\n 3\n 4\n+new\n 5\n 6\n 7\n"
        "@@ -10,4 +11,4 @@\n 10\n 11\n 12\n-13\n\\ No newline at end of file\n+thirteen\n");
  CHECK(patched.Text().starts_with("one\n2\n3\n4\nnew\n"));
}

}  // namespace
}  // namespace advise
