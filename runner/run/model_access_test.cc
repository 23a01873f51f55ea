// SPDX-License-Identifier: Apache-2.0
#include "run/model_access.h"

#include <stdlib.h>

#include <catch2/catch.hpp>

namespace run {
namespace {

std::string HostsOf(const Request& request) {
  std::string hosts;
  Result<agent::AgentDescription> agent = agent::FindAgentDescription(request.agent);
  for (const policy::ModelHost& host :
       ModelHostsOf(agent.ok() ? &agent.value() : nullptr, request)) {
    hosts += (hosts.empty() ? "" : " ") + host.host + ":" + std::to_string(host.port) + host.path;
  }
  return hosts;
}

TEST_CASE("The hosts of an agent's model are those of its provider, and no other's") {
  Request request;
  CHECK(HostsOf(request).empty());
  request.agent = "no-agent";
  CHECK(HostsOf(request).empty());
  request.agent = "codex";
  CHECK(HostsOf(request) == "api.openai.com:443");
  request.agent = "pi";
  CHECK(HostsOf(request) == "api.anthropic.com:443");
  request.secrets = {{"OPENAI_API_KEY", "OPENAI_API_KEY", "api.openai.com"}};
  CHECK(HostsOf(request) == "api.openai.com:443");
  request.providers = {{"github", ""}, {"gemini", ""}};
  CHECK(HostsOf(request) == "generativelanguage.googleapis.com:443");
  request.agent = "claude-code";
  request.providers = {{"bedrock", ""}};
  CHECK(HostsOf(request) == "bedrock-runtime.*.amazonaws.com:443 bedrock.*.amazonaws.com:443");
}

TEST_CASE("An address of the host's or the command line's leads the model elsewhere") {
  Request request;
  request.agent = "opencode";
  request.providers = {{"openai-compatible", ""}};
  CHECK(HostsOf(request).empty());
  ::setenv("OPENAI_COMPATIBLE_BASE_URL", "https://models.example.com:8443/v1", 1);
  CHECK(HostsOf(request) == "models.example.com:8443");
  ::unsetenv("OPENAI_COMPATIBLE_BASE_URL");
  request.providers = {};
  request.env = {{"ANTHROPIC_API_KEY", "x"},
                 {"ANTHROPIC_BASE_URL", "http://host.openshell.internal:8080"}};
  CHECK(HostsOf(request) == "host.openshell.internal:8080");
  request.env[1].second = "nonsense";
  CHECK(HostsOf(request) == "api.anthropic.com:443");
}

TEST_CASE("A fork's run writes to its model and to nothing else") {
  Request request;
  request.providers = {{"anthropic", ""}};
  policy::Policy policy = policy::ParsePolicy(
                              "defaults: none\n"
                              "endpoints:\n"
                              "  - api.anthropic.com:443:full\n"
                              "  - api.example.com:443:full\n"
                              "  - socket.example.com:443:full:websocket\n"
                              "  - audit.example.com:443:read-only:rest:audit\n"
                              "  - raw.example.com:22\n"
                              "  - read.example.com:443:read-only\n",
                              {})
                              .value()
                              .policy;
  CloseWrites(request, &policy);
  std::string left;
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      CHECK(endpoint.enforcement == policy::Enforcement::kEnforce);
      CHECK(endpoint.only_reads == (endpoint.host != "api.anthropic.com"));
      left += endpoint.host + ":";
      for (const policy::HttpRule& rule : endpoint.rules) left += " " + rule.method;
      left += "\n";
    }
  }
  CHECK(left ==
        "api.anthropic.com: *\n"
        "api.example.com: GET HEAD OPTIONS\n"
        "audit.example.com: GET HEAD OPTIONS\n"
        "read.example.com: GET HEAD OPTIONS\n");
}

}  // namespace
}  // namespace run
