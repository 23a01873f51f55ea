// SPDX-License-Identifier: Apache-2.0
#include "agent/package.h"

#include <catch2/catch.hpp>

namespace agent {
namespace {

// A digest of 64 bytes in Base64.
#define SHA512 \
  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="

constexpr char kStart[] =
    R"({"lockfileVersion": 3, "packages": {"": {"dependencies": {"an-agent": "1.2.3"}},
"node_modules/an-agent": {"version": "1.2.3", "integrity": "sha512-)" SHA512 R"("})";

std::string FaultOf(const std::string& lock) {
  Status checked = CheckLock({"an-agent", "1.2.3", "package-lock.json", lock});
  return checked.ok() ? "" : checked.error().what;
}

std::string With(const std::string& entry) { return kStart + (", " + entry) + "}}"; }

TEST_CASE("A package is a name and an exact version") {
  CHECK(ParsePackage("pi@1.2.3").value().name == "pi");
  CHECK(ParsePackage("@openai/codex@0.169.0-linux-x64").value().version == "0.169.0-linux-x64");
  CHECK(ParsePackage("@a.b/c_d@1.0.0+build").ok());
  for (const char* text :
       {"pi", "pi@", "pi@latest", "pi@^1.2.3", "pi@1.2", "pi@1.2.x", "@openai/codex", "@/x@1.2.3",
        "../x@1.2.3", "a/b@1.2.3", "https://example.com/x@1.2.3", "-x@1.2.3", "Pi@1.2.3",
        "pi@1.2.3 --registry=x", "pi@1.2.3;x", "@a/b/c@1.2.3", ""}) {
    INFO(text);
    CHECK_FALSE(ParsePackage(text).ok());
  }
}

TEST_CASE("A lock file pins every package by its digest, the agent's own at its version") {
  CHECK(FaultOf(kStart + std::string("}}")).empty());
  CHECK(FaultOf(
            With(R"("node_modules/a": {"version": "1.0.0", "integrity": "sha1-BBBB sha512-)" SHA512
                 R"(",
      "resolved": "https://registry.example.com/a.tgz"})"))
            .empty());
  CHECK(FaultOf(With(R"("node_modules/a/node_modules/b": {"inBundle": true})")).empty());
  for (const char* entry :
       {R"("node_modules/a": {"version": "1.0.0"})",
        R"("node_modules/a": {"version": "1.0.0", "integrity": "sha1-BBBB"})",
        R"("node_modules/a": {"version": "1.0.0", "integrity": "sha512-"})",
        R"("node_modules/a": {"version": "1.0.0", "integrity": "sha512-AAAA"})",
        R"("node_modules/a": {"version": "1.0.0", "integrity": "sha1-BBBB sha512-"})",
        R"("node_modules/a": {"link": 1, "integrity": "sha512-)" SHA512 R"("})",
        R"("node_modules/a": {"integrity": "sha512-)" SHA512
        R"(", "resolved": "git+ssh://example.com/a"})",
        R"("node_modules/a": {"integrity": "sha512-)" SHA512 R"(", "resolved": "file:../a.tgz"})",
        R"("node_modules/a": {"integrity": "sha512-)" SHA512
        R"(", "resolved": "http://example.com/a"})",
        R"("node_modules/a": {"link": true, "resolved": "a"})", R"("a": {"version": "1.0.0"})"}) {
    INFO(entry);
    CHECK(FaultOf(With(entry)).find("does not pin") != std::string::npos);
  }
  CHECK(FaultOf("{}").find("not a lock file") != std::string::npos);
  CHECK(FaultOf("no json").find("not a lock file") != std::string::npos);
  CHECK(FaultOf(R"({"lockfileVersion": 1, "dependencies": {}})").find("not a lock file") !=
        std::string::npos);
  CHECK(FaultOf(R"({"lockfileVersion": 3, "packages": {"": {}}})").find("is not for") !=
        std::string::npos);
  std::string other = kStart + std::string("}}");
  other.replace(other.find("\"version\": \"1.2.3\""), 18, "\"version\": \"1.2.4\"");
  CHECK(FaultOf(other).find("is not for an-agent@1.2.3") != std::string::npos);
}

TEST_CASE("The manifest of a lock file has what its root depends on") {
  const std::string lock = kStart + std::string("}}");
  CHECK(ManifestOf({"an-agent", "1.2.3", "", lock}).value() ==
        "{\n  \"dependencies\": {\n    \"an-agent\": \"1.2.3\"\n  }\n}\n");
}

}  // namespace
}  // namespace agent
