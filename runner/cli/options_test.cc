// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/code_of.h"

namespace cli {
namespace {

const RunOption& Option(std::string_view name) {
  for (const RunOption& option : kRunOptions) {
    if (option.spec.name == name) return option;
  }
  FAIL("no option " << name);
  return kRunOptions[0];
}

run::Request With(std::string_view name, std::string_view text) {
  run::Request request = DefaultRequest();
  REQUIRE(SetOption(Option(name), text, &request).ok());
  return request;
}

Error Refused(std::string_view name, std::string_view text) {
  run::Request request = DefaultRequest();
  return SetOption(Option(name), text, &request).error();
}

TEST_CASE("a provider is a name, and may have a variable of its own") {
  run::ProviderBinding plain = With("provider", "anthropic").providers.at(0);
  CHECK(plain.name == "anthropic");
  CHECK(plain.variable.empty());
  CHECK(With("provider", "github=BOT_PAT").providers.at(0).variable == "BOT_PAT");
  for (const char* text : {"", "=X", "github=", "github=1X", "github=ghp_x y"}) {
    CHECK(Refused("provider", text).code == Code::kUsage);
  }
  run::Request request = With("provider", "github");
  CHECK_FALSE(SetOption(Option("provider"), "github=OTHER", &request).ok());
}

TEST_CASE("DefaultRequest holds the defaults that design and reference promise") {
  run::Request request = DefaultRequest();

  CHECK(request.agent == "command");
  CHECK(request.workdir == ".");
  CHECK(request.timeout_s == 20 * 60);
  CHECK(request.idle_timeout_s == 0);
  CHECK(request.memory_bytes == int64_t{4} << 30);
  CHECK(request.cpus == 0);
  CHECK(request.pids == 1024);
  CHECK(request.disk_bytes == int64_t{8} << 30);
  CHECK(request.output_bytes == int64_t{64} << 20);
  CHECK(request.report_dir == "agentic-ci-report");
  CHECK_FALSE(request.apply);
}

TEST_CASE("option names are unique") {
  std::set<std::string_view> names;
  for (const RunOption& option : kRunOptions) CHECK(names.insert(option.spec.name).second);
}

TEST_CASE("SetOption reads limits with their units") {
  CHECK(With("timeout", "1h30m").timeout_s == 5400);
  CHECK(With("idle-timeout", "off").idle_timeout_s == 0);
  CHECK(With("memory", "512MiB").memory_bytes == int64_t{512} << 20);
  CHECK(With("cpus", "1.5").cpus == 1.5);
  CHECK(With("pids", "64").pids == 64);
}

TEST_CASE("SetOption puts the option's name before what is wrong") {
  Error error = Refused("timeout", "soon");

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "--timeout: 'soon' is not a duration, such as 90s, 20m or 1h30m");
}

TEST_CASE("SetOption refuses a run without a time limit") {
  CHECK(Refused("timeout", "off").what == "--timeout: the minimum is 1s");
}

TEST_CASE("SetOption refuses a memory in which nothing starts") {
  CHECK(Refused("memory", "4").what == "--memory: the minimum is 16MiB");
  CHECK(Refused("memory", "16777215").what == "--memory: the minimum is 16MiB");
  CHECK(With("memory", "16MiB").memory_bytes == int64_t{16} << 20);
}

TEST_CASE("SetOption refuses an empty value") {
  CHECK(Refused("policy", "").what == "--policy: the value is empty");
}

TEST_CASE("SetOption binds a credential to one host") {
  run::SecretBinding plain = With("secret", "API_KEY@Api.Example.COM").secrets.at(0);
  CHECK(plain.name == "API_KEY");
  CHECK(plain.variable == "API_KEY");
  CHECK(plain.host == "api.example.com");

  run::SecretBinding renamed = With("secret", "API_KEY=CI_KEY@api.example.com").secrets.at(0);
  CHECK(renamed.name == "API_KEY");
  CHECK(renamed.variable == "CI_KEY");
}

TEST_CASE("SetOption refuses a credential that is not bound to exactly one host") {
  for (const char* text :
       {"API_KEY", "@host", "API_KEY@", "API_KEY@*", "API_KEY@*.example.com", "1KEY@host",
        "API-KEY@host", "API_KEY=@host", "=VALUE@host", "API_KEY@host:443", "API_KEY@a..b",
        "API_KEY@.host", "API_KEY@host.", "API_KEY@ho st", "API_KEY=a value@host"}) {
    INFO(text);
    CHECK(Refused("secret", text).code == Code::kUsage);
  }
}

TEST_CASE("SetOption refuses the same credential for the same host twice") {
  run::Request request = With("secret", "KEY@a.example");

  CHECK(SetOption(Option("secret"), "KEY@b.example", &request).ok());
  CHECK(CodeOf(SetOption(Option("secret"), "KEY=OTHER@a.example", &request)) == Code::kUsage);
}

TEST_CASE("SetOption takes everything behind the first equals sign as a variable's value") {
  CHECK(With("env", "A=b=c d").env.at(0) == std::pair<std::string, std::string>("A", "b=c d"));
  CHECK(With("env", "A=").env.at(0).second.empty());
  CHECK_FALSE(Refused("env", "A").hint.empty());
  CHECK(Refused("env", "A B=c").code == Code::kUsage);
}

TEST_CASE("SetOption takes true and false for a switch, and nothing else") {
  CHECK(With("apply", "true").apply);
  CHECK_FALSE(With("apply", "false").apply);
  CHECK(Refused("apply", "yes").what == "--apply: must be true or false");
}

TEST_CASE("SetOption takes the tiers and backends that there are, and says what to take instead") {
  CHECK(With("isolation", "landlock").isolation == sandbox::Isolation::kLandlock);
  CHECK(With("isolation", "namespaces").isolation == sandbox::Isolation::kNamespaces);
  CHECK(Refused("isolation", "none").what == "--isolation: none is not a tier");
  CHECK(With("backend", "openshell").backend.name == "openshell");
  CHECK(With("backend", "native").backend.name == "native");
  CHECK(Refused("backend", "local").hint == "--isolation landlock");
  CHECK(Refused("backend", "podman").hint == "--image REF");
  CHECK(Refused("backend", "x").hint == "--backend openshell");
}

TEST_CASE("CheckRequest refuses options that exclude each other") {
  run::Request request = With("prompt", "fix it");
  CHECK(CheckRequest(request).ok());
  request.prompt_file = "task.md";
  CHECK(CodeOf(CheckRequest(request)) == Code::kUsage);

  // The one says where the policy is, the other where the configuration is.
  request = With("policy", "p.yml");
  request.policy_ref = "main";
  CHECK(CheckRequest(request).ok());

  request = With("idle-timeout", "20m");
  CHECK(CheckRequest(request).ok());
  request.idle_timeout_s += 1;
  CHECK(CodeOf(CheckRequest(request)) == Code::kUsage);
}

}  // namespace
}  // namespace cli
