// SPDX-License-Identifier: Apache-2.0
#include "run/budget.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace run {
namespace {

TEST_CASE("The servers of models are those of every provider, of the run's, and the named one") {
  Request request;
  request.model_host = "model.example.com";
  request.model_port = 8443;
  std::vector<gateway::BoundSecret> secrets;
  secrets.push_back({"KEY", "llm.example.com", Secret("x"), 443, "/v1/**"});
  secrets.back().bodies_pass = true;
  secrets.push_back({"TOKEN", "forge.example.com", Secret("x"), 443});
  const std::vector<gateway::ModelServer> servers = ModelServers(request, secrets)();
  auto has = [&servers](const std::string& host, uint16_t port, const std::string& path) {
    return std::any_of(servers.begin(), servers.end(), [&](const gateway::ModelServer& one) {
      return one.host == host && one.port == port && one.path == path;
    });
  };
  CHECK(has("model.example.com", 8443, ""));
  CHECK(has("llm.example.com", 443, "/v1/**"));
  CHECK(has("api.anthropic.com", 443, ""));
  CHECK(has("generativelanguage.googleapis.com", 443, ""));
  CHECK_FALSE(has("forge.example.com", 443, ""));
  CHECK_FALSE(has("api.github.com", 443, ""));
}

}  // namespace
}  // namespace run
