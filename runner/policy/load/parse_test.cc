// SPDX-License-Identifier: Apache-2.0
// Tests what tests/policy/openshell-load.yml and endpoints-form.yml cannot express: values, places,
// bounds.
#include "policy/load/parse.h"

#include <catch2/catch.hpp>

#include "policy/model/schema.h"

namespace policy {
namespace {

ParseContext Context() {
  ParseContext context;
  context.file = "p.yml";
  context.agent_name = "claude-code";
  context.model_hosts = [](const std::string& agent) {
    return agent == "claude-code" ? std::vector<ModelHost>{{"api.anthropic.com"}}
                                  : std::vector<ModelHost>{};
  };
  return context;
}

std::string ErrorOf(std::string_view yaml) {
  Result<ParsedPolicy> parsed = ParsePolicy(yaml, Context());
  return parsed.ok() ? "accepted" : parsed.error().what;
}

std::string HintOf(std::string_view yaml) {
  Result<ParsedPolicy> parsed = ParsePolicy(yaml, Context());
  return parsed.ok() ? "accepted" : parsed.error().hint;
}

std::string WithPaths(int count) {
  std::string yaml = "version: 1\nfilesystem_policy:\n  read_only:\n";
  for (int i = 0; i < count; ++i) yaml += "    - /p" + std::to_string(i) + "\n";
  return yaml;
}

TEST_CASE("The defaults open the agent's model, once, and `none` opens nothing") {
  ParseContext context = Context();
  auto hosts = [&](std::string_view yaml) {
    std::string text;
    ParsedPolicy parsed = ParsePolicy(yaml, context).value();
    for (const NetworkPolicy& network : parsed.policy.network) {
      for (const Endpoint& endpoint : network.endpoints) {
        if (network.key == "default-model") text += endpoint.host + endpoint.path + " ";
      }
    }
    return text;
  };
  CHECK(hosts("defaults: minimal\n") == "api.anthropic.com ");
  CHECK(hosts("defaults: agentic-ci\n").empty());  // It is among them.
  context.model_hosts = [](const std::string&) {
    return std::vector<ModelHost>{{"models.example.com", 443, "/v1/**"}, {"*.example.org", 8443}};
  };
  CHECK(hosts("defaults: minimal\n") == "models.example.com/v1/** *.example.org ");
  CHECK(hosts("defaults: agentic-ci\n") == "models.example.com/v1/** *.example.org ");
  CHECK(hosts("defaults: none\n").empty());
  CHECK(hosts("endpoints: []\n").empty());
  context.model_hosts = {};
  CHECK(hosts("defaults: minimal\n").empty());
}

TEST_CASE("ParsePolicy names file, line and column, and the nearest key") {
  CHECK(ErrorOf("version: 1\nnetwork_polices: {}\n") ==
        "p.yml:2:1: error: unknown key 'network_polices' in a policy");
  CHECK(HintOf("version: 1\nnetwork_polices: {}\n") == "write 'network_policies:'");
  CHECK(HintOf("version: 1\nfilesystem: {}\n") == "write 'filesystem_policy:'");
  CHECK(HintOf("version: 1\nlandlock: {compatibility: hard}\n") ==
        "one of: best_effort, hard_requirement");
  CHECK(HintOf("version: 1\nlandlock: {zzz: 1}\n") == "one of: compatibility");
}

// A policy with one mapping of `section`, whose first entry is to be put in place of the `@`.
std::string PolicyWith(Section section) {
  auto endpoint = [](const std::string& rest) {
    return "version: 1\nnetwork_policies: {a: {endpoints: [{host: x.example.com, port: 443" + rest +
           "}]}}";
  };
  auto middleware = [](const std::string& rest) {
    return "version: 1\nnetwork_middlewares: {a: {" + rest + "}}";
  };
  switch (section) {
    case Section::kShortForm:
      return "{@}";
    case Section::kDocument:
      return "{@, version: 1}";
    case Section::kFilesystem:
      return "version: 1\nfilesystem_policy: {@}";
    case Section::kLandlock:
      return "version: 1\nlandlock: {@}";
    case Section::kProcess:
      return "version: 1\nprocess: {@}";
    case Section::kNetworkPolicy:
      return "version: 1\nnetwork_policies: {a: {@}}";
    case Section::kBinary:
      return "version: 1\nnetwork_policies: {a: {binaries: [{@}]}}";
    case Section::kEndpoint:
      return "version: 1\nnetwork_policies: {a: {endpoints: [{@}]}}";
    case Section::kRule:
      return endpoint(", protocol: rest, rules: [{@}]");
    case Section::kMatch:
      return endpoint(", protocol: mcp, rules: [{allow: {@}}]");
    case Section::kMatcher:
      return endpoint(", protocol: mcp, rules: [{allow: {method: tools/call, tool: {@}}}]");
    case Section::kParams:
      return endpoint(", protocol: mcp, rules: [{allow: {method: tools/call, params: {@}}}]");
    case Section::kPersistedQuery:
      return endpoint(", protocol: graphql, access: full, graphql_persisted_queries: {a: {@}}");
    case Section::kJsonRpc:
      return endpoint(", protocol: json-rpc, rules: [{allow: {method: a}}], json_rpc: {@}");
    case Section::kMcp:
      return endpoint(", protocol: mcp, rules: [{allow: {method: initialize}}], mcp: {@}");
    case Section::kCredentialBinding:
      return endpoint(", credential_binding: {@}");
    case Section::kMiddleware:
      return middleware("@");
    case Section::kMiddlewareConfig:
      return middleware("middleware: openshell/regex, config: {@}");
    case Section::kMiddlewareEndpoints:
      return middleware("middleware: openshell/regex, endpoints: {@}");
  }
  return "";
}

std::string ErrorWith(const KeySpec& key, const std::string& value) {
  std::string yaml = PolicyWith(key.section);
  return ErrorOf(yaml.replace(yaml.find('@'), 1, std::string(key.name) + ": " + value));
}

TEST_CASE("ParsePolicy takes no empty value for an absent key where more would pass without it") {
  int refused = 0;
  int taken = 0;
  for (const KeySpec& key : PolicyKeys()) {
    if (key.name == "version") continue;
    for (const char* value : {"", "null", "''", "'  '", "[]", "{}"}) {
      CAPTURE(SectionId(key.section), key.name, value);
      std::string error = ErrorWith(key, value);
      bool empty = error.find("'" + std::string(key.name) + "' is empty") != std::string::npos;
      if (key.section == Section::kParams) empty = error != "accepted";  // Has words of its own.
      CHECK(empty != MayBeEmpty(key));
      ++(empty ? refused : taken);
    }
  }
  CHECK(refused > 200);
  CHECK(taken > 100);
}

TEST_CASE("ParsePolicy says where an empty value stands, and what to do") {
  const char* yaml =
      "version: 1\nnetwork_policies:\n  a:\n    endpoints:\n      - host: x.example.com\n"
      "        port: 443\n        allowed_ips: []\n";
  CHECK(ErrorOf(yaml) == "p.yml:7:22: error: 'allowed_ips' is empty");
  CHECK(HintOf(yaml) == "write a value, or remove 'allowed_ips'");
}

TEST_CASE("ParsePolicy bounds the number and the length of paths (OpenShell 6.1 #13, #14)") {
  CHECK(ErrorOf(WithPaths(256)) == "accepted");
  CHECK(ErrorOf(WithPaths(257)).find("more than 256 paths") != std::string::npos);
  std::string longest = "/" + std::string(4095, 'a');
  CHECK(ErrorOf("version: 1\nfilesystem_policy: {read_only: [" + longest + "]}") == "accepted");
  CHECK(ErrorOf("version: 1\nfilesystem_policy: {read_only: [" + longest + "a]}")
            .find("longer than 4096 bytes") != std::string::npos);
}

TEST_CASE("ParsePolicy judges and gives paths in their one spelling") {
  for (const char* root : {"/", "//", "/.", "/./", "/.//"}) {
    INFO(root);
    CHECK(ErrorOf("version: 1\nfilesystem_policy: {read_write: [" + std::string(root) + "]}")
              .ends_with("writing to '/' is overly broad"));
  }
  FilesystemPolicy filesystem =
      ParsePolicy("version: 1\nfilesystem_policy: {read_only: [/./], read_write: [/opt//, /a/./b]}",
                  Context())
          .value()
          .policy.filesystem;
  CHECK(filesystem.read_only == std::vector<std::string>{"/"});
  CHECK(filesystem.read_write == std::vector<std::string>{"/opt", "/a/b"});
}

TEST_CASE("ParsePolicy says that a network policy without endpoints opens nothing") {
  for (const char* endpoints : {"", ", endpoints: []"}) {
    INFO(endpoints);
    Result<ParsedPolicy> parsed =
        ParsePolicy("version: 1\nnetwork_policies: {a: {binaries: [{path: /**}]" +
                        std::string(endpoints) + "}}",
                    Context());
    REQUIRE(parsed.ok());
    REQUIRE(parsed.value().warnings.size() == 1);
    CHECK(parsed.value().warnings[0].what == "no 'endpoints': this policy opens nothing");
  }
}

TEST_CASE("ParsePolicy reads an empty landlock section as an absent one") {
  CHECK(ErrorOf("version: 1\nlandlock: {}\n") == "accepted");
  CHECK(ErrorOf("version: 1\nlandlock:\n") == "accepted");
  CHECK(ErrorOf("version: 1\nlandlock: {compatibility: \"\"}\n") != "accepted");
}

TEST_CASE("ParsePolicy bounds the file") {
  std::string filler(262144 - 11, '#');
  CHECK(ErrorOf("version: 1\n" + filler) == "accepted");
  CHECK(ErrorOf("version: 1\n" + filler + "#").find("larger than 262144") != std::string::npos);
}

TEST_CASE("ParsePolicy gives the restrictive file system when none is written") {
  FilesystemPolicy filesystem = ParsePolicy("version: 1\n", Context()).value().policy.filesystem;
  CHECK(filesystem.include_workdir);
  CHECK(filesystem.read_only == std::vector<std::string>{"/usr", "/lib", "/proc", "/dev/urandom",
                                                         "/app", "/etc", "/var/log"});
  CHECK(filesystem.read_write == std::vector<std::string>{"/tmp", "/dev/null"});
}

TEST_CASE("ParsePolicy leaves the workdir out of a section that does not name it") {
  FilesystemPolicy filesystem =
      ParsePolicy("version: 1\nfilesystem_policy: {read_only: [/usr]}", Context())
          .value()
          .policy.filesystem;
  CHECK_FALSE(filesystem.include_workdir);
  CHECK(filesystem.read_write.empty());
}

TEST_CASE("ParsePolicy reads the modes") {
  Policy policy = ParsePolicy(
                      "version: 1\n"
                      "landlock: {compatibility: hard_requirement}\n"
                      "process: {run_as_user: sandbox, run_as_group: 1000}\n",
                      Context())
                      .value()
                      .policy;
  CHECK(policy.landlock == LandlockMode::kHardRequirement);
  CHECK(policy.process.run_as_user == "sandbox");
  CHECK(policy.process.run_as_group == "1000");
}

TEST_CASE("ParsePolicy reads an endpoint as it is written") {
  ParsedPolicy parsed =
      ParsePolicy(
          "version: 1\n"
          "network_policies:\n"
          "  z: {}\n"
          "  a:\n"
          "    name: Shown\n"
          "    endpoints:\n"
          "      - host: API.Example.com.\n"
          "        ports: [443, 8443]\n"
          "        protocol: rest\n"
          "        enforcement: audit\n"
          "        path: /v1/**\n"
          "        allow_encoded_slash: true\n"
          "        allowed_ips: [10.1.0.0/16, 10.2.3.4]\n"
          "        rules:\n"
          "          - allow: {method: get, path: /v1/x, query: {a: {any: [b, c]}}}\n"
          "        deny_rules:\n"
          "          - {method: '*', path: '**'}\n"
          "    binaries: [{path: /usr/bin/git}]\n",
          Context())
          .value();
  CHECK_FALSE(parsed.short_form);
  REQUIRE(parsed.policy.network.size() == 2);
  const NetworkPolicy& network = parsed.policy.network[0];
  CHECK(network.key == "a");
  CHECK(network.name == "Shown");
  CHECK(network.at.line == 4);
  CHECK(parsed.policy.network[1].name == "z");
  REQUIRE(network.endpoints.size() == 1);
  const Endpoint& endpoint = network.endpoints[0];
  CHECK(endpoint.host == "api.example.com");
  CHECK(endpoint.ports == std::vector<uint16_t>{443, 8443});
  CHECK(endpoint.protocol == Protocol::kRest);
  CHECK(endpoint.enforcement == Enforcement::kAudit);
  CHECK(endpoint.path == "/v1/**");
  CHECK(endpoint.allow_encoded_slash);
  CHECK(endpoint.allowed_ips.size() == 2);
  CHECK(endpoint.at.line == 7);
  REQUIRE(endpoint.rules.size() == 1);
  CHECK(endpoint.rules[0].method == "GET");
  CHECK(endpoint.rules[0].at.line == 15);
  CHECK(endpoint.rules[0].query[0].any == std::vector<std::string>{"b", "c"});
  CHECK(endpoint.deny_rules[0].path == "**");
  CHECK(network.binaries == std::vector<std::string>{"/usr/bin/git"});
}

TEST_CASE("An absent enforcement enforces") {
  Policy policy =
      ParsePolicy(
          "version: 1\nnetwork_policies: {a: {endpoints: [{host: x.y.z, port: 1, access: full}]}}",
          Context())
          .value()
          .policy;
  CHECK(policy.network[0].endpoints[0].enforcement == Enforcement::kEnforce);
  CHECK(policy.network[0].endpoints[0].protocol == Protocol::kRest);
}

TEST_CASE("An access preset on a tunnel stays a label") {
  Policy policy = ParsePolicy(
                      "version: 1\nnetwork_policies: {a: {endpoints: "
                      "[{host: x.y.z, port: 1, access: full, tls: skip}]}}",
                      Context())
                      .value()
                      .policy;
  const Endpoint& endpoint = policy.network[0].endpoints[0];
  CHECK(endpoint.protocol == Protocol::kL4);
  CHECK(endpoint.rules.empty());
  CHECK(endpoint.access == Access::kFull);
}

TEST_CASE("The short form puts the defaults first and each text once") {
  ParsedPolicy parsed = ParsePolicy(
                            "endpoints:\n"
                            "  - a.example.com:443:full\n"
                            "  - a.example.com:443:full\n"
                            "  - github.com:443:full\n"
                            "  - github.com:443:read-only\n",
                            Context())
                            .value();
  CHECK(parsed.short_form);
  REQUIRE(parsed.policy.network.size() == 2);
  CHECK(parsed.policy.network[0].key == "defaults");
  CHECK(parsed.policy.network[0].endpoints.size() == 8);
  CHECK(parsed.policy.network[0].endpoints[0].host == "github.com");
  CHECK(parsed.policy.network[0].endpoints[7].host == "api.anthropic.com");
  CHECK(parsed.policy.network[0].endpoints[0].at.line == 0);
  const NetworkPolicy& file = parsed.policy.network[1];
  CHECK(file.key == "endpoints");
  REQUIRE(file.endpoints.size() == 2);
  CHECK(file.endpoints[1].access == Access::kReadOnly);
  CHECK(file.binaries == std::vector<std::string>{"the agent"});
}

TEST_CASE("DefaultPolicy is the forge for git, and the model of an agent that has one") {
  Policy policy = DefaultPolicy(Context());
  REQUIRE(policy.network.size() == 2);
  CHECK(policy.network[0].key == "default-forge");
  CHECK(policy.network[1].key == "default-model");
  CHECK(policy.network[1].binaries == std::vector<std::string>{"the agent"});
  ParseContext command;
  command.forge_host = "git.example.com";
  Policy other = DefaultPolicy(command);
  REQUIRE(other.network.size() == 1);
  CHECK(other.network[0].endpoints[0].host == "git.example.com");
}

TEST_CASE("The reference names every key of the schema") {
  std::string reference = RenderPolicyReference();
  for (const KeySpec& key : PolicyKeys()) {
    CHECK(reference.find("`" + std::string(key.name) + "`") != std::string::npos);
  }
}

// The only endpoint of a policy with that endpoint.
Endpoint Only(const std::string& endpoint) {
  std::string yaml = "version: 1\nnetwork_policies: {a: {endpoints: [{" + endpoint + "}]}}\n";
  INFO(yaml);
  Result<ParsedPolicy> parsed = ParsePolicy(yaml, Context());
  REQUIRE(parsed.ok());
  return parsed.value().policy.network.at(0).endpoints.at(0);
}

std::vector<std::string> Methods(const Endpoint& endpoint) {
  std::vector<std::string> methods;
  for (const HttpRule& rule : endpoint.rules) methods.push_back(rule.method + rule.operation_type);
  return methods;
}

TEST_CASE("ParsePolicy expands an access by its protocol") {
  using Names = std::vector<std::string>;
  std::string host = "host: x.example.com, port: 443, ";
  CHECK(Methods(Only(host + "protocol: websocket, access: read-only")) == Names{"GET"});
  CHECK(Methods(Only(host + "protocol: websocket, access: read-write")) ==
        Names{"GET", "WEBSOCKET_TEXT"});
  CHECK(Methods(Only(host + "protocol: graphql, access: read-only")) == Names{"query"});
  CHECK(Methods(Only(host + "protocol: graphql, access: read-write")) ==
        Names{"query", "mutation"});
  CHECK(Methods(Only(host + "protocol: graphql, access: full")) == Names{"*"});
  CHECK(Methods(Only(host + "protocol: rest, access: read-write")) ==
        Names{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"});
  Endpoint implied = Only(host + "access: full");
  CHECK(implied.protocol == Protocol::kRest);
  CHECK(implied.protocol_implied);
}

TEST_CASE("ParsePolicy gives MCP rules a method, and one rule per tool") {
  std::string mcp = "host: x.example.com, port: 443, protocol: mcp, ";
  std::string all = "mcp: {allow_all_known_mcp_methods: true}";
  CHECK(Methods(Only(mcp + all)) == std::vector<std::string>{"*"});
  Endpoint narrowed = Only(mcp + all + ", rules: [{allow: {tool: {any: [a, 'b*']}}}]");
  REQUIRE(narrowed.rules.size() == 2);
  CHECK(narrowed.mcp.allow_all_known_methods);
  CHECK(narrowed.rules[0].method == "tools/call");
  CHECK(narrowed.rules[0].tool == "a");
  CHECK(narrowed.rules[1].tool == "b*");
}

TEST_CASE("ParsePolicy reads the keys of one protocol") {
  Endpoint graphql = Only(
      "host: x.example.com, port: 443, protocol: GraphQL, persisted_queries: allow_registered, "
      "graphql_max_body_bytes: 9, graphql_persisted_queries: {h: {operation_type: query, "
      "operation_name: N, fields: [f]}}, rules: [{allow: {operation_type: mutation}}]");
  CHECK(graphql.allow_registered_queries);
  CHECK(graphql.body_bytes_max == 9);
  REQUIRE(graphql.persisted_queries.size() == 1);
  CHECK(graphql.persisted_queries[0].id == "h");
  CHECK(graphql.persisted_queries[0].operation_type == "query");
  CHECK(graphql.persisted_queries[0].fields == std::vector<std::string>{"f"});
  CHECK(graphql.rules[0].operation_type == "mutation");
  Endpoint signing = Only(
      "host: x.example.com, port: 443, protocol: rest, access: full, "
      "credential_signing: 'sigv4:no_body', signing_service: s3, signing_region: r, "
      "credential_binding: {provider: p}");
  CHECK(signing.signing == Signing::kSigV4NoBody);
  CHECK(signing.signing_service == "s3");
  CHECK(signing.signing_region == "r");
  CHECK(signing.credential_provider == "p");
  Endpoint socket = Only(
      "host: x.example.com, port: 443, protocol: websocket, access: full, "
      "websocket_credential_rewrite: true");
  CHECK(socket.websocket_credential_rewrite);
  Endpoint rpc = Only(
      "host: x.example.com, port: 443, protocol: json-rpc, json_rpc: {max_body_bytes: 7}, "
      "rules: [{allow: {method: a}}]");
  CHECK(rpc.body_bytes_max == 7);
}

TEST_CASE("ParsePolicy sorts middlewares by their order") {
  Policy policy =
      ParsePolicy(
          "version: 1\nnetwork_middlewares:\n"
          "  a: {middleware: openshell/regex, order: 5, endpoints: {include: [A.b]}}\n"
          "  b: {middleware: openshell/regex, order: -5, on_error: fail_open, name: n,\n"
          "      endpoints: {include: ['*'], exclude: [c]}}\n",
          Context())
          .value()
          .policy;
  REQUIRE(policy.middlewares.size() == 2);
  CHECK(policy.middlewares[0].name == "n");
  CHECK(policy.middlewares[0].fail_open);
  CHECK(policy.middlewares[0].exclude == std::vector<std::string>{"c"});
  CHECK(policy.middlewares[1].include == std::vector<std::string>{"a.b"});
}

TEST_CASE("ParsePolicy reads the options of the short form") {
  Policy policy =
      ParsePolicy(
          "defaults: none\nendpoints:\n"
          "  - a.example.com:443:read-write:websocket:enforce:websocket-credential-rewrite\n"
          "  - b.example.com:443:full:rest::request-body-credential-rewrite, "
          "allow-uninspected-credentials,allowed-ip=10.1.0.0/16,allowed-ip=fd00::1\n",
          Context())
          .value()
          .policy;
  const std::vector<Endpoint>& endpoints = policy.network.at(0).endpoints;
  CHECK(endpoints[0].protocol == Protocol::kWebSocket);
  CHECK(endpoints[0].websocket_credential_rewrite);
  CHECK(endpoints[0].rules.size() == 2);
  CHECK(endpoints[1].request_body_credential_rewrite);
  CHECK(endpoints[1].allow_uninspected_credentials);
  CHECK(endpoints[1].allowed_ips == std::vector<std::string>{"10.1.0.0/16", "fd00::1"});
}

TEST_CASE(
    "Where a wider endpoint lets calls pass that a narrower one does not, a warning says so") {
  auto warnings = [](const std::string& wide, const std::string& binary = "/a") {
    Result<ParsedPolicy> parsed = ParsePolicy(
        "version: 1\n"
        "network_policies:\n"
        "  a:\n"
        "    endpoints:\n"
        "      - {host: a.example, port: 443, path: /mcp, protocol: mcp, rules: [{allow: {method: "
        "ping}}]}\n"
        "    binaries: [{path: /a}]\n"
        "  b:\n"
        "    endpoints:\n"
        "      - " +
            wide +
            "\n"
            "    binaries: [{path: " +
            binary + "}]\n",
        Context());
    REQUIRE(parsed.ok());
    std::string found;
    for (const Warning& warning : parsed.value().warnings) found += warning.what;
    return found;
  };
  const std::string same = "{host: a.example, port: 443, protocol: rest, access: read-write}";
  CHECK(warnings(same).find("the wider endpoint at line 9 allows POST here") != std::string::npos);
  CHECK_FALSE(warnings(same, "'/**'").empty());
  for (const char* harmless :
       {"{host: a.example, port: 443, protocol: rest, access: read-only}",
        "{host: b.example, port: 443, protocol: rest, access: full}",
        "{host: a.example, port: 444, protocol: rest, access: full}",
        "{host: a.example, port: 443}",
        "{host: a.example, port: 443, path: /x, protocol: rest, access: full}",
        "{host: a.example, port: 443, protocol: rest, rules: [{allow: {method: POST, path: "
        "/x}}]}"}) {
    INFO(harmless);
    CHECK(warnings(harmless).empty());
  }
  CHECK(warnings(same, "/b").empty());
}

TEST_CASE("An endpoint for every name warns of what name servers are told") {
  auto warnings = [](const std::string& endpoint) {
    Result<ParsedPolicy> parsed =
        ParsePolicy("version: 1\nnetwork_policies:\n  a:\n    endpoints: [" + endpoint +
                        "]\n    binaries: [{path: /a}]\n",
                    Context());
    REQUIRE(parsed.ok());
    return parsed.value().warnings.size();
  };
  CHECK(warnings("{port: 443, allowed_ips: [10.0.0.0/16]}") == 1);
  CHECK(warnings("{host: a.example, port: 443, allowed_ips: [10.0.0.0/16]}") == 0);
}

}  // namespace
}  // namespace policy
