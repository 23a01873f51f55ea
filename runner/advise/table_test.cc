// SPDX-License-Identifier: Apache-2.0
#include "advise/table.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace advise {
namespace {

// A folder of its own, gone with the object.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/policy-table-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, std::string_view text) {
    std::string path = path_ + "/" + name;
    REQUIRE(sys::WriteFile(path, text).ok());
    return path;
  }

 private:
  std::string path_;
};

constexpr std::string_view kPolicy =
    "version: 1\n"
    "network_policies:\n"
    "  api:\n"
    "    endpoints: [{host: api.example.com, port: 443, access: read-only}]\n"
    "    binaries: [{path: /usr/bin/curl}]\n";

TEST_CASE("RunPolicyTable tries every row and reports those that fail, each with its place") {
  Folder folder;
  folder.Write("p.yml", kPolicy);
  std::string table =
      folder.Write("t.yml",
                   "about: A table.\n"
                   "policy: p.yml\n"
                   "cases:\n"
                   "  - {request: 'GET https://api.example.com/', expect: allow}\n"
                   "  - {request: 'GET https://api.example.com/', expect: deny}\n"
                   "  - {request: 'GET https://api.example.com/', expect: audit}\n"
                   "  - {request: 'PUT https://api.example.com/', expect: allow}\n"
                   "  - {request: 'PUT https://api.example.com/', expect: deny,\n"
                   "     by: some other reason}\n"
                   "  - {request: 'GET https://api.example.com/a/..', expect: allow,\n"
                   "     path: /a}\n"
                   "accepts: [{yaml: {version: 2}}]\n"
                   "rejects:\n"
                   "  - {yaml: {version: 1}, error: x}\n"
                   "  - {yaml: {version: 2}, error: no such text}\n");
  TableReport report = RunPolicyTable(table).value();
  CHECK(report.about == "A table.");
  CHECK(report.cases == 9);
  REQUIRE(report.failures.size() == 8);
  CHECK(report.failures[0] == table +
                                  ":5:5: GET https://api.example.com/: expected deny, found "
                                  "allow: allowed by policy 'api'");
  CHECK(report.failures[2] == table +
                                  ":7:5: PUT https://api.example.com/: expected allow, found "
                                  "deny: PUT / not permitted by policy");
}

TEST_CASE("RunPolicyTable takes a request that is none for denied only where the row says so") {
  Folder folder;
  std::string table = folder.Write("t.yml",
                                   "policy: {version: 1}\n"
                                   "cases:\n"
                                   "  - {request: 'CONNECT a:b', expect: deny, by: malformed}\n"
                                   "  - {request: 'CONNECT a:b', expect: deny}\n"
                                   "  - {request: 'CONNECT a:1', expect: deny, by: malformed}\n");
  TableReport report = RunPolicyTable(table).value();
  REQUIRE(report.failures.size() == 2);
  CHECK(report.failures[0].find(":4:5: a:b: ") != std::string::npos);
  CHECK(report.failures[0].find("write 'expect: deny, by: malformed'") != std::string::npos);
  CHECK(report.failures[1].find(":5:5: ") != std::string::npos);
}

std::string ErrorOf(std::string_view text) {
  Folder folder;
  Result<TableReport> report = RunPolicyTable(folder.Write("t.yml", text));
  if (report.ok()) return "accepted";
  const std::string& what = report.error().what;
  return what.substr(what.find("t.yml"));
}

TEST_CASE("RunPolicyTable says what is wrong with a table") {
  CHECK(ErrorOf("about: x\n") == "t.yml:1:1: error: the table has no cases");
  CHECK(ErrorOf("case: []\n") == "t.yml:1:1: error: unknown key 'case' in a table");
  CHECK(ErrorOf("cases: [{request: 'GET https://a/', expect: deny, by: }]\npolicy: default\n")
            .find("error: 'by' must be text, not nothing") != std::string::npos);
  CHECK(ErrorOf("cases: [{request: 'GET https://a/', expect: yes}]\n") ==
        "t.yml:1:9: error: 'expect' is missing or invalid");
  CHECK(ErrorOf("cases: [{request: 'GET https://a.example.com/', expect: deny}]\n") ==
        "t.yml:1:9: error: the table names no policy");
  CHECK(ErrorOf("cases: [{request: 'GET a.example.com', expect: deny}]\n") ==
        "t.yml:1:9: error: 'request' is neither METHOD URL nor CONNECT host:port");
  CHECK(ErrorOf("policy: missing.yml\n").find("t.yml:1:9: error: policy 'missing.yml'") == 0);
  CHECK(ErrorOf("policy: {version: 2}\n") == "t.yml:1:19: error: 'version' must be 1");
  CHECK(ErrorOf("rejects: [{yaml: {version: 2}}]\n").find("needs 'error'") != std::string::npos);
  CHECK(RunPolicyTable("/nonexistent/table.yml").error().code == Code::kNotFound);
}

}  // namespace
}  // namespace advise
