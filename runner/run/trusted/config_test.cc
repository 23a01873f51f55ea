// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/config.h"

#include <catch2/catch.hpp>

namespace run {
namespace {

constexpr char kPem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    "-----END PUBLIC KEY-----\n";

// A commit with one key.
Result<std::string> ReadNamed(const std::string& path) {
  if (path == ".agentic-ci/cosign.pub") return std::string(kPem);
  if (path == "README.md") return std::string("# hello\n");
  return Error{Code::kNotFound, "there is no " + path + " at HEAD"};
}

Result<Config> Parse(std::string_view text) { return ParseConfig(text, {"config.yml", ReadNamed}); }

image::Reference Named(const char* text) {
  Result<image::Reference> reference = image::ParseReference(text);
  REQUIRE(reference.ok());
  return std::move(reference).value();
}

}  // namespace

TEST_CASE("What forks may have is a model, and has to be written out") {
  CHECK_FALSE(Parse("bots: ['dependabot[bot]']\n").value().fork_models);
  CHECK(Parse("forks: model\n").value().fork_models);
  for (const char* other : {"true", "secrets", "[model]", "''", "{}"}) {
    Result<Config> refused = Parse(std::string("forks: ") + other + "\n");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kInvalid);
  }
}

TEST_CASE("A configuration names the applications that may start runs, each by its name") {
  Result<Config> config = Parse("bots: ['dependabot[bot]', 'my-app[bot]']\n");
  REQUIRE(config.ok());
  CHECK(config.value().bots == std::vector<std::string>{"dependabot[bot]", "my-app[bot]"});
  for (const char* bots : {"'*'", "dependabot", "'*[bot]'", "''"}) {
    Result<Config> refused = Parse(std::string("bots: [") + bots + "]\n");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().what.starts_with("config.yml:1:"));
  }
}

TEST_CASE("A configuration describes agents, and its tasks name them") {
  Result<Config> config =
      Parse("agents:\n  mine: {program: my-agent}\ntasks:\n  fix: {agent: mine, prompt: x}\n");
  REQUIRE(config.ok());
  REQUIRE(config.value().agents.size() == 1);
  CHECK(config.value().agents[0].name == "mine");
  Result<Config> unknown = Parse("agents: {mine: {program: x}}\ntasks: {fix: {agent: mien}}\n");
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().what == "config.yml:2:22: error: unknown agent \"mien\"");
  CHECK(unknown.error().hint == "mine");
  CHECK_FALSE(Parse("agents: {}\n").ok());
  CHECK_FALSE(Parse("agents: {codex: {program: x}}\n").ok());
  Result<Config> typo = Parse("agents: {mine: {program: x, promt: stdin}}\n");
  REQUIRE(!typo.ok());
  CHECK(typo.error().what.starts_with("config.yml:1:29: error: unknown key 'promt'"));
}

TEST_CASE("A configuration says what models' providers may do") {
  CHECK(Parse("hosted_tools: none\n").value().hosted_tools.empty());
  CHECK_FALSE(Parse("after_untrusted: none\n").value().after_untrusted.used());
  CHECK(Parse("after_untrusted: {closes: [all]}\n").value().after_untrusted.used());
  CHECK_FALSE(Parse("after_untrusted: {}\n").ok());
  Result<Config> config = Parse("hosted_tools: [urls, web_search: {domains: [a.example]}]\n");
  REQUIRE(config.ok());
  CHECK(policy::RenderHostedTools(config.value().hosted_tools) ==
        "[urls, web_search: {domains: [a.example]}]");
  for (const char* text : {"[]", "[web_serch]", "{}", "true", "[web_search: {domains: []}]"}) {
    INFO(text);
    Result<Config> refused = Parse(std::string("hosted_tools: ") + text + "\n");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().what.starts_with("config.yml:1:"));
  }
}

TEST_CASE("A configuration names the controls that must be enforced") {
  Result<Config> config = Parse("require: [memory, capture]\n");
  REQUIRE(config.ok());
  CHECK(config.value().require ==
        std::vector{sandbox::ControlName::kMemory, sandbox::ControlName::kCapture});
  Result<Config> unknown = Parse("require: [memroy]\n");
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().what.find("no control is called 'memroy'") != std::string::npos);
  CHECK(unknown.error().hint == "memory");
}

TEST_CASE("A configuration's limits, models, prices and ecosystems are read") {
  Result<Config> config = Parse(
      "limits:\n  max_tokens: 2000000\n  max_cost: 2.50\n  max_requests: 100\n"
      "  requests_per_minute: 30\nmodels: [claude-sonnet-4-5]\n"
      "prices:\n  - {model: ours, input: 1, output: 2}\necosystems: [python, node]\n");
  REQUIRE(config.ok());
  CHECK(config.value().max_tokens == 2000000);
  CHECK(config.value().max_cost_usd == 2.5);
  CHECK(config.value().max_requests == 100);
  CHECK(config.value().requests_per_minute == 30);
  CHECK(config.value().models == std::vector<std::string>{"claude-sonnet-4-5"});
  CHECK(config.value().prices.Find("ours") != nullptr);
  CHECK(config.value().ecosystems == std::vector<std::string>{"python", "node"});
}

TEST_CASE("A configuration's rules for paths are read, and none widens nothing") {
  Result<Config> config = Parse("gates:\n  paths:\n    .vscode/: allow\n    '*.tf': refuse\n");
  REQUIRE(config.ok());
  REQUIRE(config.value().gates.paths.size() == 2);
  CHECK(config.value().gates.paths[0].pattern == ".vscode/");
  CHECK(config.value().gates.paths[0].action == change::PathAction::kAllow);
  CHECK(config.value().gates.paths[1].action == change::PathAction::kRefuse);
  for (const char* text : {"gates: {paths: {}}\n", "gates: {}\n"}) {
    Result<Config> empty = Parse(text);
    REQUIRE(empty.ok());
    CHECK(empty.value().gates.paths.empty());
  }
}

TEST_CASE("The limits of a patch are read, and a task's come before the configuration's") {
  Config config = Parse("gates: {files: 7, bytes: 2MiB}\n").value();
  CHECK(config.gates.files == 7);
  CHECK(config.gates.bytes == 2 << 20);
  Gates merged = Merge(config.gates, Gates{.paths = {}, .files = 9});
  CHECK(merged.files == 9);
  CHECK(merged.bytes == 2 << 20);
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
        Case{"limits:\n  max_tokens: 0\n", "config.yml:2:15: error: a limit must be", ""},
        Case{"limits:\n  max_cost: free\n", "config.yml:2:13: error: a cost limit", "5"},
        Case{"budget:\n  per_day: free\n", "config.yml:2:12: error: a cost limit", "5"},
        Case{"budget:\n  per_dy: 5\n", "config.yml:2:3: error: unknown key 'per_dy'", "per_day"},
        Case{"budget: {per_day: 5, unknown: no}\n", "config.yml:1:31: error: what is done",
             "unknown: refuse"},
        Case{"budget: {unknown: warn}\n", "config.yml:1:9: error: the budget has no amount",
             "budget: { per_day: 20 }"},
        Case{"limits:\n  max_tokens: ' 5'\n", "config.yml:2:15: error: a limit must be", ""},
        Case{"limits: {}\n", "config.yml:1:9: error: 'limits' is empty", ""},
        Case{"limits: ~\n", "config.yml:1:9: error: 'limits' is empty", ""},
        Case{"models: []\n", "config.yml:1:9: error: 'models' is empty", ""},
        Case{"models: ['']\n", "config.yml:1:10: error: an entry of 'models' is empty", ""},
        Case{"ecosystems: ~\n", "config.yml:1:13: error: 'ecosystems' must be a list", ""},
        Case{"images: {mirrors: ~}\n", "config.yml:1:19: error: 'mirrors' must be a list", ""},
        Case{"models: claude\n", "config.yml:1:9: error: 'models' must be a list, not text", ""},
        Case{"prices:\n  - {model: x}\n", "config.yml:2:5: error: a price needs", ""},
        Case{"gates: {path: {a: warn}}\n", "config.yml:1:9: error: unknown key", "paths"},
        Case{"gates: {files: 0}\n", "config.yml:1:16: error: a limit must be a whole number", ""},
        Case{"gates: {files: 50001}\n", "config.yml:1:16: error: a limit must be a whole", ""},
        Case{"gates: {bytes: 65MiB}\n", "config.yml:1:16: error: a limit must be a size of",
             "64MiB"},
        Case{"gates: {files: }\n", "config.yml:1:", ""},
        Case{"gates: {paths: [a]}\n", "config.yml:1:16: error: 'paths' must be a mapping",
             "deploy/: refuse"},
        Case{"gates: {paths: }\n", "config.yml:1:", ""},
        Case{"gates: {paths: {a: allowed}}\n", "config.yml:1:20: error: the action for a path",
             "allow"},
        Case{"gates: {paths: {a: }}\n", "config.yml:1:", ""},
        Case{"gates: {paths: {../a: warn}}\n", "config.yml:1:17: error: '../a' is not a path", ""},
        Case{"gates: []\n", "config.yml:1:8: error: gates must be a mapping", ""},
        Case{"- limits\n", "config.yml:1:1: error: the configuration must be a mapping", ""}}) {
    Result<Config> config = Parse(row.text);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kInvalid);
    CHECK(config.error().what.find(row.where) == 0);
    CHECK(config.error().hint.find(row.hint) != std::string::npos);
  }
}

TEST_CASE("A configuration's empty file, list or mapping never stands for no limit at all") {
  const std::string rule =
      "images:\n  trust:\n    - repository: a/**\n      identity: a@example.com\n"
      "      issuer: https://issuer.example\n      claims: ";
  for (const std::string& text :
       {std::string(), std::string("# limits: {max_cost: 5}\n"), std::string("limits: {}\n"),
        std::string("limits:\n"), std::string("limits: {max_cost: ''}\n"),
        std::string("models: []\n"), std::string("models:\n"), std::string("models: ['']\n"),
        rule + "{}\n", rule + "\n", rule + "{source_ref: ''}\n",
        std::string("images: {trusted_root: ''}\n")}) {
    CAPTURE(text);
    Result<Config> config = Parse(text);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kInvalid);
  }
  // A value that opens nothing may be empty.
  for (const std::string& text :
       {std::string("ecosystems: []\n"), std::string("prices: []\n"), std::string("images: {}\n"),
        std::string("images: {trust: [], mirrors: []}\n"),
        rule + "{source_ref: refs/heads/main}\n"}) {
    CAPTURE(text);
    CHECK(Parse(text).ok());
  }
  CHECK(Parse("images: {trust: []}\n").value().trust.Matching(Named("a/b")).empty());
}

TEST_CASE("Who signs images is read, with keys from the same commit") {
  Result<Config> config = Parse(
      "images:\n  mirrors: [docker.io=mirror.example]\n  trust:\n"
      "    - repository: ghcr.io/owner/*\n      key: .agentic-ci/cosign.pub\n"
      "      require_log: true\n      sign_target: index\n"
      "      signatures: [ghcr.io/owner/signatures]\n"
      "    - repository: docker.io/**\n      identity: https://github.com/owner/**\n"
      "      issuer: https://token.actions.githubusercontent.com\n"
      "      claims: {source_repository: https://github.com/owner/agent}\n"
      "      predicate_types: [https://slsa.dev/provenance/v1]\n");
  REQUIRE(config.ok());
  CHECK(config.value().mirrors == std::vector<std::string>{"docker.io=mirror.example"});
  const image::TrustPolicy& trust = config.value().trust;
  REQUIRE(trust.rules.size() == 2);
  const auto& key = std::get<sigstore::KeyRule>(trust.rules[0].options.signer);
  CHECK(key.pem == kPem);
  CHECK(key.require_log);
  CHECK(trust.rules[0].target == image::SignTarget::kIndex);
  CHECK(trust.rules[0].origin == "config.yml:4:7");
  const auto& identity = std::get<sigstore::IdentityRule>(trust.rules[1].options.signer);
  CHECK(identity.identity == "https://github.com/owner/**");
  CHECK(identity.claims ==
        std::vector<std::pair<int, std::string>>{{12, "https://github.com/owner/agent"}});
  CHECK(trust.Matching(Named("ghcr.io/owner/agent:1")).size() == 1);
  CHECK(trust.Matching(Named("ghcr.io/owner/deep/agent")).empty());
  CHECK(trust.Matching(Named("debian")).size() == 1);
  CHECK(trust.Matching(Named("quay.io/owner/agent")).empty());
}

TEST_CASE("An image policy that is not understood is refused by line") {
  struct Case {
    const char* rule;
    const char* where;
  };
  for (const Case& row :
       {Case{"{repository: a, keys: x}", ":3:23: error: unknown key 'keys'"},
        Case{"{key: .agentic-ci/cosign.pub}", ":3:7: error: 'repository' is missing"},
        Case{"{repository: a}", ":3:7: error: the signer is missing"},
        Case{"{repository: a, identity: b}", ":3:7: error: the signer is missing"},
        Case{"{repository: a, key: .agentic-ci/cosign.pub, issuer: b}",
             ":3:7: error: 'key' cannot be combined"},
        Case{"{repository: a, key: ~}", ":3:28: error: 'key' is empty"},
        Case{"{repository: a, identity: '', issuer: b}", ":3:33: error: 'identity' is empty"},
        Case{"{repository: a, identity: b, issuer: c, claims: {}}", ": error: 'claims' is empty"},
        Case{"{repository: a, identity: b, issuer: c, claims: {run: ''}}",
             ": error: 'run' is empty"},
        Case{"{repository: a, identity: b, issuer: c, signatures: ~}",
             ": error: 'signatures' must be a list"},
        Case{"{repository: a, key: missing.pub}", ":3:28: error: the key missing.pub: there is no"},
        Case{"{repository: a, key: README.md}",
             ":3:28: error: the key README.md: bad-key: not a public"},
        Case{"{repository: 'a[', key: README.md}", ":3:20: error:"},
        Case{"{repository: a, identity: b, issuer: c, claims: {owner: d}}", ": error: unknown key"},
        Case{"{repository: a, identity: b, issuer: c, sign_target: all}",
             ":3:60: error: 'all' is not a valid value for 'sign_target'"},
        Case{"{repository: a, identity: b, issuer: c, require_log: 2}",
             ":3:60: error: 'require_log' must be true or false"},
        Case{"{repository: a, identity: b, issuer: c, signatures: ['A B']}", ": error: "}}) {
    Result<Config> config = Parse(std::string("images:\n  trust:\n    - ") + row.rule + "\n");
    INFO(row.rule);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kInvalid);
    CHECK(config.error().what.find(row.where) != std::string::npos);
  }
  CHECK_FALSE(Parse("images: {trusted_root: README.md}\n").ok());
  CHECK_FALSE(Parse("images: {trust: {repository: a}}\n").ok());
}

TEST_CASE("Policies that decide alike have one fingerprint, others have another") {
  auto fingerprint = [](const std::string& rule) {
    Result<Config> config = Parse("images:\n  trust:\n    - " + rule + "\n");
    REQUIRE(config.ok());
    return config.value().trust.fingerprint;
  };
  std::string one = "{repository: a, identity: b, issuer: c}";
  CHECK(fingerprint(one) == fingerprint("{issuer: c, identity: b, repository: a}"));
  for (const char* other :
       {"{repository: b, identity: b, issuer: c}", "{repository: a, identity: bc, issuer: c}",
        "{repository: a, identity: b, issuer: c, require_log: false}",
        "{repository: a, identity: b, issuer: c, require_timestamp: true}",
        "{repository: a, identity: b, issuer: c, sign_target: index}",
        "{repository: a, identity: b, issuer: c, claims: {run: x}}",
        "{repository: a, identity: b, issuer: c, predicate_types: [x]}",
        "{repository: a, identity: b, issuer: c, signatures: [x]}",
        "{repository: a, key: .agentic-ci/cosign.pub}"}) {
    CHECK(fingerprint(one) != fingerprint(other));
  }
}

}  // namespace run
