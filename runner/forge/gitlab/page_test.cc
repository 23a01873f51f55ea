// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/page.h"

#include <catch2/catch.hpp>

namespace forge {

TEST_CASE("The report's page lies among the artifacts of the job that ran the agent last") {
  const codec::Json jobs = codec::ParseJson(R"([{"id": 40, "name": "agentic-ci"},
    {"id": 43, "name": "agentic-ci"}, {"id": 44, "name": "agentic-ci-post"}])")
                               .value();
  Event event;
  event.server_url = "https://gitlab.example";
  event.repository = "acme/web/site";
  const auto address = [&](const std::string& job, const std::string& report) {
    return PageAddress(jobs, job, event, report);
  };
  const std::string job = "https://gitlab.example/acme/web/site/-/jobs/43/artifacts/file/";
  CHECK(address("agentic-ci", "agentic-ci-report") == job + "agentic-ci-report/report.html");
  CHECK(address("agentic-ci", "./out/a report") == job + "out/a%20report/report.html");
  CHECK(address("other", "agentic-ci-report").empty());
  for (const char* outside : {"/tmp/report", "../report", "a/../../report"}) {
    CHECK(address("agentic-ci", outside).empty());
  }
  CHECK(PageAddress(codec::Json(), "agentic-ci", event, "report").empty());
}

}  // namespace forge
