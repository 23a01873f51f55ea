// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

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

// The report of a run that has ended, with a patch.
void WriteEarlier(const std::string& report, const std::string& phase = "agent") {
  const Fd directory = sys::Open(report, O_RDONLY | O_DIRECTORY).value();
  for (const auto& [name, text] :
       {std::pair("changes.patch", std::string("precious")),
        std::pair("run.json", R"({"tool_version": "", "outcome": {}, "phases": [{"name": ")" +
                                  phase + R"("}]})")}) {
    const Fd file = sys::OpenAt(directory.get(), name, O_WRONLY | O_CREAT, 0644).value();
    REQUIRE(sys::WriteAll(file.get(), text).ok());
  }
}

TEST_CASE("An earlier report is set aside until the agent has started") {
  Place place;
  const std::string report = place.top + "/site/report";
  WriteEarlier(report);
  {
    Result<ReportDirectory> first = ReportDirectory::Prepare(report);
    REQUIRE(first.ok());
    CHECK(first.value().has_earlier());
    CHECK(sys::ReadFile(report + "/earlier/changes.patch", 99).value() == "precious");
    CHECK_FALSE(sys::Exists(report + "/changes.patch"));
    REQUIRE(first.value().Restore().ok());
    CHECK(sys::ReadFile(report + "/changes.patch", 99).value() == "precious");
    CHECK_FALSE(sys::Exists(report + "/earlier"));
    CHECK_FALSE(sys::Exists(report + "/events.log"));
  }
  {
    Result<ReportDirectory> second = ReportDirectory::Prepare(report);
    REQUIRE(second.ok());
    second.value().Start();
    CHECK_FALSE(second.value().has_earlier());
    CHECK_FALSE(sys::Exists(report + "/earlier"));
    CHECK(sys::Exists(report + "/events.log"));
  }
  // Killed before it could write its record, and never started: nothing to keep.
  CHECK_FALSE(ReportDirectory::Prepare(report).value().has_earlier());
  WriteEarlier(report, "event");
  CHECK_FALSE(ReportDirectory::Prepare(report).value().has_earlier());
}

TEST_CASE("What no run has written is not replaced by an earlier report") {
  Place place;
  const std::string report = place.top + "/site/report";
  WriteEarlier(report);
  REQUIRE(sys::MakeDirectories(report + "/earlier").ok());
  const Fd earlier = sys::Open(report + "/earlier", O_RDONLY | O_DIRECTORY).value();
  REQUIRE(sys::OpenAt(earlier.get(), "changes.patch", O_WRONLY | O_CREAT, 0644).ok());
  CHECK(ReportDirectory::Prepare(report).error().code == Code::kRefused);
  CHECK(sys::Exists(report + "/run.json"));
}

TEST_CASE("A new report directory is kept out of git, and no other directory is") {
  Place place;
  REQUIRE(ReportDirectory::Prepare(place.top + "/site/new").ok());
  CHECK(sys::ReadFile(place.top + "/site/new/.gitignore", 9).value() == "*\n");
  REQUIRE(ReportDirectory::Prepare(place.top + "/site").ok());
  CHECK_FALSE(sys::Exists(place.top + "/site/.gitignore"));
}

}  // namespace
}  // namespace run
