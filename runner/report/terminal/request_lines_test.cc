// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/request_lines.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

DenialList SomeRequests() {
  DenialList list;
  list.allowed.push_back({"api.test", 443, "GET", "/a", "/usr/bin/curl", 3});
  DeniedRequest denied;
  denied.denial.host = "evil.test";
  denied.denial.port = 80;
  denied.denial.method = "POST";
  denied.denial.path = "/\x1b[2J\nrefused  x";
  denied.denial.binary = "/usr/bin/python3";
  denied.reason = "no rule allows it";
  denied.allow_line = "evil.test:80:read-write";
  list.denials.push_back(denied);
  list.failures.push_back({"gone.test", 443, "no such name", 1});
  return list;
}

TEST_CASE("Each different request is an entry of harmless lines") {
  std::vector<RequestEntry> entries = RenderRequests(SomeRequests(), true);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].text == "allowed  GET api.test:443/a by /usr/bin/curl, 3 times\n");
  CHECK(entries[1].text ==
        "refused  POST evil.test:80/ refused  x by /usr/bin/python3: no rule allows it\n"
        "         would be allowed by  evil.test:80:read-write\n");
  CHECK(entries[0].outcome == record::Event::Outcome::kAllowed);
  CHECK(entries[1].outcome == record::Event::Outcome::kDenied);
  CHECK(entries[2].outcome == record::Event::Outcome::kFailed);
  CHECK(entries[2].text == "failed   gone.test:443: no such name\n");
}

TEST_CASE("What is not in the list is told, once where nothing is counted") {
  DenialList list = SomeRequests();
  list.dropped = 7;
  std::vector<RequestEntry> entries = RenderRequests(list, true);
  REQUIRE(entries.size() == 4);
  CHECK(entries[2].text == "refused  7 more than can be listed: see events.ocsf.jsonl\n");
  DenialList later = list;
  later.dropped = 8;
  CHECK(RenderRequests(later, false) == RenderRequests(list, false));
}

TEST_CASE("Without counts, an entry stays the same when its request is made again") {
  DenialList more = SomeRequests();
  more.allowed[0].count = 9;
  CHECK(RenderRequests(more, false) == RenderRequests(SomeRequests(), false));
  CHECK(RenderRequests(more, true) != RenderRequests(SomeRequests(), true));
}

}  // namespace
}  // namespace report
