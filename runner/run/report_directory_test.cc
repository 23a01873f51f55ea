// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace run {
namespace {

// A checkout with a directory `report`, and another outside of it.
struct Place {
  Place() {
    char name[] = "/tmp/report-directory-test.XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    top = name;
    for (const char* below : {"/site/.git", "/site/report", "/site/out/report", "/else/report"}) {
      REQUIRE(sys::MakeDirectories(top + below).ok());
    }
  }
  ~Place() { std::filesystem::remove_all(top); }
  std::string SetAside(const std::string& path) const {
    Result<std::string> moved = SetReportAside(top + path, ".refused");
    REQUIRE(moved.ok());
    return moved.value();
  }
  std::string top;
};

TEST_CASE("a refused report directory of a checkout gets another name") {
  Place place;
  CHECK(place.SetAside("/site/report/") == place.top + "/site/report.refused");
  CHECK_FALSE(sys::Exists(place.top + "/site/report"));
  CHECK(sys::Exists(place.top + "/site/report.refused"));
  CHECK(place.SetAside("/site/out/report") == place.top + "/site/out/report.refused");
}

TEST_CASE("of a refused path the first link gets another name, and nothing behind it") {
  Place place;
  REQUIRE(::symlink("../else", (place.top + "/site/link").c_str()) == 0);
  CHECK(place.SetAside("/site/link/report") == place.top + "/site/link.refused");
  CHECK(sys::Exists(place.top + "/else/report"));
}

TEST_CASE("what no commit put there keeps its name, and what another run writes to") {
  Place place;
  for (const char* path : {"/else/report", "/site", "/site/absent", "/site/absent/report"}) {
    CAPTURE(path);
    CHECK(place.SetAside(path).empty());
  }
  CHECK(sys::Exists(place.top + "/else/report"));
  {
    Result<ReportDirectory> other = ReportDirectory::Prepare(place.top + "/site/report");
    REQUIRE(other.ok());
    CHECK(place.SetAside("/site/report").empty());
  }
  CHECK_FALSE(place.SetAside("/site/report").empty());
}

}  // namespace
}  // namespace run
