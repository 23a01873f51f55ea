// SPDX-License-Identifier: Apache-2.0
#include "advise/explain.h"

#include <catch2/catch.hpp>

namespace advise {
namespace {

policy::ParsedPolicy Read() {
  policy::ParseContext context;
  context.file = "p.yml";
  return policy::ParsePolicy(
             "version: 1\n"
             "network_policies:\n"
             "  api:\n"
             "    endpoints:\n"
             "      - host: api.example.com\n"
             "        port: 443\n"
             "        protocol: rest\n"
             "        rules:\n"
             "          - allow: {method: GET, path: '/a/**'}\n"
             "    binaries: [{path: /usr/bin/curl}]\n",
             context)
      .value();
}

TEST_CASE("Explain judges the connection and the request of a URL") {
  Explanation explanation =
      Explain(Read(), "https://api.example.com/a/./b?x=1", "GET", {"/usr/bin/curl"}).value();
  CHECK(RenderExplanation(explanation) ==
        "allow  GET https://api.example.com/a/b?x=1\n"
        "  connection: allow by p.yml:5:9: allowed by policy 'api'\n"
        "  request: allow by p.yml:9:20: allowed by policy 'api'\n");
}

TEST_CASE("Explain stops at the step that refused") {
  Explanation refused = Explain(Read(), "https://api.example.com/b", "GET", {}).value();
  CHECK(RenderExplanation(refused) ==
        "deny  GET https://api.example.com/b\n"
        "  connection: allow by p.yml:5:9: allowed by policy 'api'\n"
        "  request: deny by p.yml:5:9: GET /b not permitted by policy\n"
        "  nearest rule: p.yml:9:20 allows GET /a/**\n"
        "  note: for the program '/usr/bin/curl'; use --binary to ask about another one\n");
  Explanation unknown = Explain(Read(), "example.org:443", "", {}).value();
  CHECK_FALSE(unknown.allowed);
  CHECK(RenderExplanation(unknown) ==
        "deny  CONNECT example.org:443\n"
        "  connection: deny: endpoint example.org:443 is not allowed by any policy\n");
}

TEST_CASE("Explain refuses a path that has no canonical form") {
  Explanation refused =
      Explain(Read(), "https://api.example.com/a/%2e%2e/%2e%2e", "GET", {}).value();
  CHECK(refused.steps.back().what == "path");
  CHECK_FALSE(refused.allowed);
}

TEST_CASE("Explain fails on what is neither URL nor host:port") {
  for (std::string_view bad : {"api.example.com", "ftp://x/", "https://", "https://a b/", ""}) {
    CHECK_FALSE(Explain(Read(), bad, "GET", {}).ok());
  }
  CHECK_FALSE(Explain(Read(), "https://api.example.com/", "G T", {}).ok());
}

TEST_CASE("RenderExplanationJson has the verdict, the rule and every step") {
  std::string json =
      RenderExplanationJson(Explain(Read(), "https://api.example.com/b", "GET", {}).value());
  CHECK(json.find("\"decision\": \"deny\"") != std::string::npos);
  CHECK(json.find("\"policy\": \"api\"") != std::string::npos);
  CHECK(json.find("\"at\": \"p.yml:5:9\"") != std::string::npos);
  CHECK(json.find("\"what\": \"connection\"") != std::string::npos);
}

}  // namespace
}  // namespace advise
