// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/provider.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/code_of.h"
#include "codec/wire/http_head.h"
#include "gateway/credential/credentials.h"

namespace gateway {
namespace {

constexpr std::string_view kFile = R"(provider: acme
about: A service.
credentials:
  - {name: ACME_KEY, from: [ACME_KEY, OLD_KEY], header: x-key}
endpoints:
  - {host: api.acme.example, port: 443, path: /v1/**, base_url: ACME_URL}
replaces: {headers: [x-key, authorization], query: [key]}
environment: {ACME_MODE: "1"}
pass: [ACME_REGION]
)";

// A host with these variables; secrets are variables like any other.
ProviderHost NewHost(std::map<std::string, std::string> variables) {
  auto find = [variables](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  ProviderHost host;
  host.variable = find;
  host.secret = [find](const std::string& name) { return Secret(find(name).value_or("")); };
  host.read = [](const std::string& path) -> Result<std::string> {
    return Error{Code::kNotFound, path};
  };
  return host;
}

Provider Acme() { return ParseProvider(kFile, "acme.yml").value(); }

TEST_CASE("Every built-in provider reads, is named after its file and binds every credential") {
  REQUIRE(ProviderNames().size() == 10);
  for (const std::string& name : ProviderNames()) {
    INFO(name);
    Result<Provider> provider = FindProvider(name);
    REQUIRE(provider.ok());
    CHECK(provider.value().name == name);
    CHECK_FALSE(provider.value().about.empty());
    for (const ProviderEndpoint& endpoint : provider.value().endpoints) {
      bool placed = endpoint.form.has_value() || !provider.value().signing_service.empty();
      for (const ProviderCredential& credential : provider.value().credentials) {
        CHECK((placed || !credential.form.header.empty()));
      }
    }
  }
  Result<Provider> unknown = FindProvider("antropic");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().code == Code::kNotFound);
}

TEST_CASE("A mistake in a provider's file is shown with its place") {
  struct Case {
    std::string from;
    std::string to;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {"about: A service.", "abuot: A service.",
            "acme.yml:2:1: error: unknown key 'abuot' in a provider"},
           {"port: 443", "port: 0",
            "acme.yml:6:36: error: 'port' must be a number from 1 to 65535"},
           {"port: 443", "port: ~", "acme.yml:6:36: error: 'port' must be a number"},
           {"port: 443", "port: '443'", "acme.yml:6:36: error: 'port' must be a number"},
           {"header: x-key}", "header: X-Key}",
            "acme.yml:4:57: error: a header name must be in lower case"},
           {"header: x-key}", "scheme: Bearer}",
            "acme.yml:4:57: error: 'scheme' and 'user' need a 'header'"},
           {"header: x-key}", "header: x-key, scheme: Basic}",
            "acme.yml:4:5: error: 'user' and 'scheme: Basic' must be used together"},
           {"name: ACME_KEY", "name: 1KEY",
            "acme.yml:4:12: error: '1KEY' is not a valid variable name"},
           {"name: ACME_KEY", "name: ' ACME_KEY'",
            "acme.yml:4:12: error: ' ACME_KEY' is not a valid variable name"},
           {"name: ACME_KEY", "name: ~", "acme.yml:4:12: error: 'name' must be text, not nothing"},
           {"host: api.acme.example, ", "host: \"*\", ", "acme.yml:6:12: error: "},
           {"path: /v1/**", "path: v1", "acme.yml:6:47: error: 'path' must begin with '/'"},
           {"pass: [ACME_REGION]", "pass: ACME_REGION",
            "acme.yml:9:7: error: 'pass' must be a list, not text"},
           {"provider: acme", "name: acme",
            "acme.yml:1:1: error: unknown key 'name' in a provider"},
       }) {
    std::string text(kFile);
    size_t at = text.find(c.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, c.from.size(), c.to);
    Result<Provider> provider = ParseProvider(text, "acme.yml");
    INFO(c.to);
    REQUIRE_FALSE(provider.ok());
    CHECK(provider.error().what.substr(0, c.message.size()) == c.message);
  }
}

TEST_CASE("A provider becomes bound secrets, placeholders and plain variables") {
  ProviderPlan plan =
      PlanProvider(Acme(), "", {}, NewHost({{"OLD_KEY", "v"}, {"ACME_REGION", "eu"}}), 0).value();
  REQUIRE(plan.secrets.size() == 1);
  const BoundSecret& secret = plan.secrets[0];
  CHECK(secret.name == "ACME_KEY");
  CHECK(secret.host == "api.acme.example");
  CHECK(secret.port == 443);
  CHECK(secret.path == "/v1/**");
  CHECK(secret.value.reveal() == "v");
  CHECK(secret.placement.header == "x-key");
  CHECK(secret.placement.replaced_query == std::vector<std::string>{"key"});
  CHECK(plan.environment ==
        std::vector<std::pair<std::string, std::string>>{
            {"ACME_KEY", PlaceholderFor("ACME_KEY")}, {"ACME_MODE", "1"}, {"ACME_REGION", "eu"}});
}

TEST_CASE("The first variable of a list wins, and the command line before it") {
  ProviderHost host = NewHost({{"ACME_KEY", "new"}, {"OLD_KEY", "old"}, {"MINE", "mine"}});
  CHECK(PlanProvider(Acme(), "", {}, host, 0).value().secrets[0].value.reveal() == "new");
  CHECK(PlanProvider(Acme(), "MINE", {}, host, 0).value().secrets[0].value.reveal() == "mine");
  Result<ProviderPlan> none = PlanProvider(Acme(), "", {}, NewHost({}), 0);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == Code::kSetup);
  CHECK(none.error().what == "the provider acme has no credential: ACME_KEY or OLD_KEY is not set");
  CHECK(none.error().hint == "export ACME_KEY=...");
  CHECK_FALSE(PlanProvider(Acme(), "MINE", {}, NewHost({{"ACME_KEY", "new"}}), 0).ok());
}

TEST_CASE("A base URL of the host's binds the credential there instead, over TLS only") {
  auto bound = [](const std::string& url) {
    return PlanProvider(Acme(), "", {}, NewHost({{"ACME_KEY", "v"}, {"ACME_URL", url}}), 0);
  };
  ProviderPlan plan = bound("https://Proxy.Example:8443/acme/").value();
  const BoundSecret& there = plan.secrets[0];
  CHECK(there.host == "proxy.example");
  CHECK(there.port == 8443);
  CHECK(there.path == "/acme/**");
  CHECK(bound("https://proxy.example").value().secrets[0].path == "/v1/**");
  CHECK(bound("").value().secrets[0].host == "api.acme.example");
  CHECK(bound("http://host.openshell.internal:9000").value().secrets[0].port == 9000);
  CHECK_FALSE(bound("http://proxy.example").ok());
  CHECK_FALSE(bound("nonsense").ok());
  for (const char* loopback : {"localhost", "127.0.0.1"}) {
    Error error = bound("http://" + std::string(loopback) + ":11434/v1").error();
    CHECK(error.what == "ACME_URL names the loopback, where the sandbox has its own");
    CHECK(error.hint == "export ACME_URL=http://host.openshell.internal:11434/v1");
  }
}

TEST_CASE("Bedrock signs with an access key, and with its own API key it does not") {
  Provider bedrock = FindProvider("bedrock").value();
  ProviderHost keys = NewHost({{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "key"}});
  ProviderPlan plan = PlanProvider(bedrock, "", {}, keys, 0).value();
  CredentialTarget target{"bedrock-runtime.eu-west-1.amazonaws.com", 443, "/model/x/invoke", true};
  CHECK(Credentials(std::move(plan.secrets)).SigningService(target) == "bedrock");
  plan = PlanProvider(bedrock, "", {}, NewHost({{"AWS_BEARER_TOKEN_BEDROCK", "token"}}), 0).value();
  Credentials bearer(std::move(plan.secrets));
  CHECK(bearer.SigningService(target).empty());
  codec::HttpFields fields = {{"Authorization", "AWS4-HMAC-SHA256 mine"}};
  std::string path = "/model/x/invoke";
  std::string query;
  CHECK_FALSE(bearer.Apply(target, {&fields, &path, &query}).has_value());
  REQUIRE(fields.size() == 1);
  CHECK(fields[0].value == "Bearer token");
}

TEST_CASE("The forges take a token for their API and a password for git") {
  auto sent = [](const std::string& name, const std::string& variable, const std::string& host,
                 const std::string& path) {
    ProviderPlan plan =
        PlanProvider(FindProvider(name).value(), "", {}, NewHost({{variable, "t0ken"}}), 0).value();
    Credentials credentials(std::move(plan.secrets));
    codec::HttpFields fields;
    std::string sent_path = path;
    std::string query;
    CredentialTarget target{host, 443, path, true};
    CHECK_FALSE(credentials.Apply(target, {&fields, &sent_path, &query}).has_value());
    REQUIRE(fields.size() == 1);
    return fields[0].name + ": " + fields[0].value;
  };
  CHECK(sent("github", "GITHUB_TOKEN", "api.github.com", "/user") == "authorization: Bearer t0ken");
  CHECK(sent("github", "GH_TOKEN", "github.com", "/o/r/info/refs") ==
        "authorization: Basic eC1hY2Nlc3MtdG9rZW46dDBrZW4=");
  CHECK(sent("gitlab", "GITLAB_TOKEN", "gitlab.com", "/api/v4/user") == "private-token: t0ken");
  CHECK(sent("gitlab", "GITLAB_TOKEN", "gitlab.com", "/o/r.git/info/refs") ==
        "authorization: Basic b2F1dGgyOnQwa2Vu");
}

TEST_CASE("Vertex is bound to a grant, shows the agent no placeholder, and counts on") {
  Provider vertex = FindProvider("vertex").value();
  const std::string user =
      R"({"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"})";
  ProviderPlan plan =
      PlanProvider(vertex, "", {}, NewHost({{"GCLOUD_CREDENTIALS", user}}), 2).value();
  REQUIRE(plan.grants.size() == 1);
  CHECK(plan.grants[0].key.reveal() == "r");
  for (const BoundSecret& secret : plan.secrets) {
    CHECK(secret.grant == 2);
    CHECK(secret.value.empty());
  }
  for (const auto& [name, value] : plan.environment) {
    CHECK(value.find("openshell") == std::string::npos);
  }
  CHECK(CodeOf(PlanProvider(vertex, "", {}, NewHost({{"GCLOUD_CREDENTIALS", "/absent"}}), 0)) ==
        Code::kNotFound);
}

}  // namespace
}  // namespace gateway
