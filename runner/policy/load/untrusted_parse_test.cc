// SPDX-License-Identifier: Apache-2.0
#include "policy/load/untrusted_parse.h"

#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace policy {
namespace {

Result<AfterUntrusted> Parse(const std::string& value) {
  const codec::YamlNode root = codec::ParseYaml("a: " + value + "\n", "policy.yml").value();
  return ParseAfterUntrusted("policy.yml", *root.Find("a"));
}

TEST_CASE("after_untrusted has words, hosts and ports") {
  const AfterUntrusted read =
      Parse(
          "{closes: [writes, credentials, web_search, \"*.Example.com:443\"], "
          "stays: [api.example.com, image_generation], trusts: [\"[::1]:80\", localhost:8080]}")
          .value();
  CHECK(RenderAfterUntrusted(read) ==
        "{closes: [writes, credentials, web_search, \"*.example.com:443\"], stays: "
        "[image_generation, api.example.com], trusts: [\"[::1]:80\", localhost:8080]}");
  CHECK(Parse(RenderAfterUntrusted(read)).ok());
  CHECK(Covers(read.closes.hosts, "a.example.com", 443));
  CHECK_FALSE(Covers(read.closes.hosts, "a.example.com", 80));
  CHECK(Covers(read.stays.hosts, "api.example.com", 1));
  CHECK_FALSE(Parse("none").value().used());
}

TEST_CASE("What after_untrusted cannot mean is refused") {
  for (const char* value :
       {"[]", "{}", "all", "{closes: []}", "{stays: [a.example]}", "{closes: [write]}",
        "{closes: [localhost]}", "{closes: [a.example:0]}", "{closes: [a.example:65536]}",
        "{closes: [a.example:x]}", "{closes: [\"a.example:\"]}", "{closes: [all], stays: [all]}",
        "{closes: [all], stays: [writes]}", "{closes: [all], trusts: [web_search]}",
        "{closes: [all], opens: [a.example]}", "{closes: [\"https://a.example\"]}",
        "{closes: [\"a.example/path\"]}", "{closes: [\"a b.example\"]}"}) {
    INFO(value);
    CHECK_FALSE(Parse(value).ok());
  }
  CHECK(Parse("{closes: [wirtes]}").error().hint == "writes");
}

TEST_CASE("A policy of after_untrusted alone has the minimal defaults, and OpenShell's form none") {
  const auto used = [](const std::string& text) {
    Result<ParsedPolicy> parsed = ParsePolicy(text, {});
    return parsed.ok() && parsed.value().short_form && parsed.value().policy.after_untrusted.used();
  };
  CHECK(used("after_untrusted: {closes: [writes]}\n"));
  CHECK(used("endpoints: []\nafter_untrusted: {closes: [writes]}\n"));
  CHECK_FALSE(ParsePolicy("version: 1\nafter_untrusted: {closes: [writes]}\n", {}).ok());
}

}  // namespace
}  // namespace policy
