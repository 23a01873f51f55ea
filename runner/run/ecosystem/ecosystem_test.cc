// SPDX-License-Identifier: Apache-2.0
#include "run/ecosystem/ecosystem.h"

#include <catch2/catch.hpp>
#include <map>

namespace run {
namespace {

// A machine with these answers, a repository with these files.
struct World {
  std::map<std::string, std::string> answers;
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> documents;

  RegistrySources Sources() const {
    auto find = [](const auto& map, const std::string& key) -> std::optional<std::string> {
      auto found = map.find(key);
      return found == map.end() ? std::nullopt : std::optional(found->second);
    };
    return {
        [=, this](const Ecosystem::Ask& ask) { return find(answers, ask.program).value_or(""); },
        [=, this](const std::string& path) { return find(files, path); },
        [=, this](const std::string& url) { return find(documents, url); }};
  }

  std::vector<std::string> Hosts(const std::string& name) const {
    Result<std::vector<Ecosystem>> ecosystem = FindEcosystems({name});
    REQUIRE(ecosystem.ok());
    std::vector<std::string> hosts;
    for (const Registry& registry : FindRegistries(ecosystem.value()[0], Sources())) {
      hosts.push_back(registry.host + ":" + std::to_string(registry.port));
    }
    return hosts;
  }
};

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("A registry is what the tool prints, once, in lower case, with its port") {
  World world;
  world.answers["npm"] = "npm warn config\nhttps://Npm.Mirror.Example:8443/api/npm/\n";
  world.answers["yarn"] = "https://npm.mirror.example:8443/\n";
  CHECK(world.Hosts("node") == Hosts{"npm.mirror.example:8443"});
}

TEST_CASE("Lock files name registries only where they name packages") {
  World world;
  world.files["package-lock.json"] =
      R"({"packages":{"a":{"resolved": "https://tarballs.example/a.tgz","funding":)"
      R"({"url": "https://sponsor.example/x"}},"b":{"resolved": "git+ssh://git@other.example/b"}}})";
  CHECK(world.Hosts("node") == Hosts{"tarballs.example:443"});
  world.files.clear();
  world.files["gradle/wrapper/gradle-wrapper.properties"] =
      "distributionUrl=https\\://wrappers.example/gradle-8.zip\n";
  CHECK(world.Hosts("java") == Hosts{"wrappers.example:443"});
}

TEST_CASE("A registry may say itself where its packages are") {
  World world;
  world.answers["cargo"] = "error: failed to download from `https://index.example/config.json`\n";
  world.documents["https://index.example/config.json"] = R"({"dl":"https://crates.example/c"})";
  CHECK(world.Hosts("rust") == Hosts{"index.example:443", "crates.example:443"});
}

TEST_CASE("A bare host name counts only where the tool prints one") {
  World world;
  world.answers["go"] = "sums.example\n";
  CHECK(world.Hosts("go") == Hosts{"sums.example:443"});
  world.answers["go"] = "https://proxy.example,direct\n";
  CHECK(world.Hosts("go") == Hosts{"proxy.example:443"});
}

TEST_CASE("This machine, an address and a name without a dot are no registries") {
  World world;
  world.answers["npm"] =
      "https://localhost:4873/ https://127.0.0.1/ https://[::1]/ https://registry/ "
      "https://10.0.0.1:80/"
      " https://x.localhost/ http://plain.example/";
  CHECK(world.Hosts("node").empty());
}

TEST_CASE("A tool that names thousands of hosts does not have them all looked at") {
  World world;
  int fetched = 0;
  for (int i = 0; i < 5000; ++i) {
    world.answers["cargo"] += "https://r" + std::to_string(i) + ".example/\n";
  }
  RegistrySources sources = world.Sources();
  sources.fetch = [&](const std::string&) -> std::optional<std::string> {
    ++fetched;
    return std::nullopt;
  };
  Ecosystem rust = FindEcosystems({"rust"}).value()[0];
  CHECK(FindRegistries(rust, sources).size() == kRegistriesMax + 1);
  CHECK(fetched == static_cast<int>(kRegistriesMax) + 1);
}

TEST_CASE("An unknown ecosystem is refused with the list") {
  Result<std::vector<Ecosystem>> found = FindEcosystems({"python", "rustxxxx"});
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code == Code::kInvalid);
  CHECK(found.error().what.find("'rustxxxx'") != std::string::npos);
  CHECK(found.error().what.find("node, python, go, rust, java") != std::string::npos);
}

TEST_CASE("An ecosystem's policy lets the agent read, and nothing write") {
  const Ecosystem node = FindEcosystems({"node"}).value().front();
  std::optional<policy::NetworkPolicy> policy = EcosystemPolicy(node, {{"npm.example", 443}});
  REQUIRE(policy.has_value());
  CHECK(policy->key == "ecosystem_node");
  CHECK(policy->binaries == Hosts{"the agent"});
  REQUIRE(policy->endpoints.size() == 1);
  for (const policy::HttpRule& rule : policy->endpoints[0].rules) {
    CHECK((rule.method == "GET" || rule.method == "HEAD" || rule.method == "OPTIONS"));
  }
  CHECK(policy->endpoints[0].allow_encoded_slash);  // npm: /@scope%2Fname.
  const Ecosystem python = FindEcosystems({"python"}).value().front();
  CHECK_FALSE(EcosystemPolicy(python, {{"index.example", 443}})->endpoints[0].allow_encoded_slash);
  CHECK_FALSE(EcosystemPolicy(node, {}).has_value());
}

}  // namespace run
