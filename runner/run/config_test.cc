// SPDX-License-Identifier: Apache-2.0
#include "run/config.h"

#include <catch2/catch.hpp>

namespace run {

TEST_CASE("A configuration's limits, models, prices and ecosystems are read") {
  Result<Config> config = ParseConfig(
      "limits:\n  max_tokens: 2000000\n  max_cost: 2.50\n  max_requests: 100\n"
      "  requests_per_minute: 30\nmodels: [claude-sonnet-4-5]\n"
      "prices:\n  - {model: ours, input: 1, output: 2}\necosystems: [python, node]\n",
      "config.yml");
  REQUIRE(config.ok());
  CHECK(config.value().max_tokens == 2000000);
  CHECK(config.value().max_cost_usd == 2.5);
  CHECK(config.value().max_requests == 100);
  CHECK(config.value().requests_per_minute == 30);
  CHECK(config.value().models == std::vector<std::string>{"claude-sonnet-4-5"});
  CHECK(config.value().prices.Find("ours") != nullptr);
  CHECK(config.value().ecosystems == std::vector<std::string>{"python", "node"});
}

TEST_CASE("A configuration that is not understood is refused by line, with the nearest name") {
  struct Case {
    const char* text;
    const char* where;
    const char* hint;
  };
  for (const Case& row :
       {Case{"limit:\n  max_tokens: 1\n", "config.yml:1:1: error: unknown key 'limit'", "limits"},
        Case{"limits:\n  max_token: 1\n", "config.yml:2:3: error: unknown key", "max_tokens"},
        Case{"limits:\n  max_tokens: 0\n", "config.yml:2:15: error: a limit is", ""},
        Case{"limits:\n  max_cost: free\n", "config.yml:2:13: error: a cost limit", "5"},
        Case{"models: claude\n", "config.yml:1:9: error: models is a list", ""},
        Case{"prices:\n  - {model: x}\n", "config.yml:2:5: error: a price needs", ""},
        Case{"- limits\n", "config.yml:1:1: error: the configuration is a mapping", ""}}) {
    Result<Config> config = ParseConfig(row.text, "config.yml");
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kInvalid);
    CHECK(config.error().what.find(row.where) == 0);
    CHECK(config.error().hint.find(row.hint) != std::string::npos);
  }
}

TEST_CASE("A file with nothing in it says nothing") {
  Result<Config> config = ParseConfig("# later\n", "config.yml");
  REQUIRE(config.ok());
  CHECK(config.value().max_tokens == 0);
}

}  // namespace run
