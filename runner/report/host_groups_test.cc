// SPDX-License-Identifier: Apache-2.0
#include "report/host_groups.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

DeniedRequest Denied(const std::string& host, int port = 443) {
  DeniedRequest denied;
  denied.denial = {host, static_cast<uint16_t>(port), "", "", "/usr/bin/curl"};
  denied.reason = "no policy";
  return denied;
}

std::vector<std::string> NamesOf(const RunRecord& record,
                                 const std::vector<AllowedRequest>& allowed = {}) {
  std::vector<std::string> names;
  for (const HostGroup& group : GroupHosts(record, allowed)) names.push_back(group.name);
  return names;
}

RunRecord DeniedAll(const std::vector<std::string>& hosts) {
  RunRecord record;
  for (const std::string& host : hosts) record.denials.push_back(Denied(host));
  return record;
}

TEST_CASE("Hosts are counted by answer, refused ones first") {
  RunRecord record = DeniedAll({"b.example"});
  record.denials[0].count = 3;
  record.failures = {{"c.example", 443, "no address", 2}};
  const std::vector<AllowedRequest> allowed = {{"a.example", 443, "GET", "/x", "/usr/bin/node", 5},
                                               {"b.example", 443, "GET", "/", "/usr/bin/curl", 1}};
  const std::vector<HostGroup> groups = GroupHosts(record, allowed);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "b.example:443");
  CHECK(groups[0].refused == 3);
  CHECK(groups[0].allowed == 1);
  CHECK(groups[0].programs == std::vector<std::string>{"/usr/bin/curl"});
  CHECK(groups[1].failed == 2);
  CHECK(groups[2].requests[0].text == "GET /x");
}

TEST_CASE("Three names that differ in a number are one; two are two") {
  CHECK(NamesOf(DeniedAll({"h1.example", "h2.example", "h45.example"})) ==
        std::vector<std::string>{"h{1…45}.example:443"});
  CHECK(NamesOf(DeniedAll({"h1.example", "h2.example"})).size() == 2);
  const std::string big(30, '9');
  CHECK(NamesOf(DeniedAll({"h1.example", "h2.example", "h" + big + ".example"})) ==
        std::vector<std::string>{"h{…}.example:443"});
}

TEST_CASE("Five names below one domain are one") {
  CHECK(
      NamesOf(DeniedAll({"ka.x.example", "kb.x.example", "kc.x.example", "kd.x.example"})).size() ==
      4);
  CHECK(NamesOf(DeniedAll(
            {"ka.x.example", "kb.x.example", "kc.x.example", "kd.x.example", "ke.x.example"})) ==
        std::vector<std::string>{"{5 names}.x.example:443"});
}

TEST_CASE("Addresses of other networks are not similar names") {
  CHECK(NamesOf(DeniedAll({"169.254.169.254", "10.0.0.1", "192.168.7.9", "1.1.1.1"})).size() == 4);
  CHECK(NamesOf(DeniedAll({"10.0.0.1", "10.0.0.2", "10.0.0.9"})) ==
        std::vector<std::string>{"10.0.0.{1…9}:443"});
}

TEST_CASE("A host that the policy allows something of is not folded") {
  const RunRecord record = DeniedAll({"h1.example", "h2.example", "h3.example"});
  CHECK(NamesOf(record, {{"h2.example", 443, "GET", "/", "", 1}}).size() == 3);
}

TEST_CASE("Names from a report that somebody made are only bytes") {
  const RunRecord record =
      DeniedAll({"a#", "a1", "a2", "a3", "", ".", "1", "2", "3", "\xff.1.\n", "#.#", "1.1", "2.#"});
  CHECK_FALSE(NamesOf(record).empty());
}

TEST_CASE("What is folded is not advised") {
  const RunRecord record =
      DeniedAll({"h1.example", "paste.example", "h2.example", "h3.example", "h4.example"});
  const std::vector<DeniedRequest> advised = DenialsToAdvise(record);
  REQUIRE(advised.size() == 1);
  CHECK(advised[0].denial.host == "paste.example");
}

}  // namespace
}  // namespace report
