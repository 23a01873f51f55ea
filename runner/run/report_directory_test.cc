// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "report/write.h"

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
  const Error refused = ReportDirectory::Prepare(report).error();
  CHECK(refused.code == Code::kRefused);
  CHECK(refused.kind == ErrorKind::kReportPlace);
  CHECK(sys::Exists(report + "/run.json"));
}

TEST_CASE("A new report directory is kept out of git, and no other directory is") {
  Place place;
  REQUIRE(ReportDirectory::Prepare(place.top + "/site/new").ok());
  CHECK(sys::ReadFile(place.top + "/site/new/.gitignore", 9).value() == "*\n");
  REQUIRE(ReportDirectory::Prepare(place.top + "/site").ok());
  CHECK_FALSE(sys::Exists(place.top + "/site/.gitignore"));
}

// Makes a directory with this mode, in which a report is to be.
std::string MakePlace(const Place& place, const std::string& name, mode_t mode) {
  std::string path = place.top + "/" + name;
  REQUIRE(sys::MakeDirectories(path).ok());
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

bool Prepares(const std::string& path) {
  Result<ReportDirectory> directory = ReportDirectory::Prepare(path);
  if (directory.ok()) return true;
  CHECK(directory.error().code == Code::kRefused);
  return false;
}

TEST_CASE("A place in which other users could swap the report directory is refused") {
  Place place;
  for (const char* below : {"/r", "/deep/er/r"}) {
    CHECK(Prepares(MakePlace(place, "ours", 0755) + below));
    CHECK(Prepares(MakePlace(place, "sticky", 01777) + below));
    CHECK_FALSE(Prepares(MakePlace(place, "open", 0777) + below));
  }
  const std::string open = MakePlace(place, "open", 0777);
  CHECK_FALSE(OpenReportPlace(open).ok());
  CHECK_FALSE(OpenReportPlace(open + "/pool").ok());
  CHECK(OpenReportPlace(place.top + "/sticky/pool").ok());
  // What leads to a directory that is this user's alone does not matter.
  CHECK(Prepares(MakePlace(place, "open/own", 0700) + "/r"));
  if (::geteuid() != 0) return;
  const std::string other = MakePlace(place, "other", 0755);
  REQUIRE(::chown(other.c_str(), 12345, 12345) == 0);
  CHECK_FALSE(Prepares(other + "/r"));
  // Itself, too: another user's files are theirs to change.
  const std::string report = MakePlace(place, "sticky/report", 0755);
  CHECK(Prepares(report));
  REQUIRE(::chown(report.c_str(), 12345, 12345) == 0);
  CHECK_FALSE(Prepares(report));
}

TEST_CASE("Another user's directory leads a report nowhere, also if it becomes a link just then") {
  if (::geteuid() != 0) return;
  Place place;
  const std::string victim = MakePlace(place, "else", 0700);
  const std::string theirs = MakePlace(place, "theirs", 0755);
  const std::string report = MakePlace(place, "theirs/r", 0755);
  const std::string link = theirs + "/l";
  REQUIRE(::symlink(victim.c_str(), link.c_str()) == 0);
  REQUIRE(::chown(theirs.c_str(), 12345, 12345) == 0);
  std::atomic<bool> ends = false;
  std::atomic<int> exchanges = 0;
  std::thread other([&] {
    while (!ends) {
      exchanges +=
          ::renameat2(AT_FDCWD, report.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) == 0;
    }
  });
  int prepared = 0;
  for (int i = 0; i < 3000; ++i) prepared += ReportDirectory::Prepare(report).ok() ? 1 : 0;
  ends = true;
  other.join();
  CHECK(exchanges > 0);
  CHECK(prepared == 0);
  CHECK_FALSE(sys::Exists(victim + "/events.log"));
  CHECK(Prepares(victim));  // The control.
}

TEST_CASE("A link below more directories than may be open is refused") {
  Place place;
  const std::string report = place.top + "/site/report";
  std::string deep = report;
  for (int i = 0; i < 60; ++i) deep += "/d";
  REQUIRE(sys::MakeDirectories(deep).ok());
  CHECK(Prepares(report));  // The control.
  REQUIRE(::symlink("/etc/hostname", (deep + "/page.html").c_str()) == 0);
  CHECK_FALSE(Prepares(report));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{40, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const bool prepares = Prepares(report);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(prepares);
}

TEST_CASE("A job's workspace may be open to all, and a checkout of this user's") {
  Place place;
  const std::string open = MakePlace(place, "open", 0777);
  for (const char* name : {"GITHUB_WORKSPACE", "CI_PROJECT_DIR"}) {
    CHECK_FALSE(Prepares(open + "/r"));
    const std::optional<std::string> before = sys::Environment(name);
    ::setenv(name, open.c_str(), 1);
    CHECK(Prepares(open + "/r"));
    before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name);
  }
  REQUIRE(sys::MakeDirectories(open + "/.git").ok());
  CHECK(Prepares(open + "/r"));
  if (::geteuid() != 0) return;
  // Another user's `.git` makes no checkout of it.
  REQUIRE(::chown((open + "/.git").c_str(), 12345, 12345) == 0);
  CHECK_FALSE(Prepares(open + "/r"));
}

TEST_CASE("A report goes to the directory that was prepared, also after another took its name") {
  Place place;
  const std::string report = place.top + "/site/report";
  const std::string victim = place.top + "/else";
  REQUIRE(sys::WriteFile(victim + "/run.json", "precious").ok());
  REQUIRE(sys::MakeDirectories(victim + "/checks/1").ok());
  Result<ReportDirectory> directory = ReportDirectory::Prepare(report);
  REQUIRE(directory.ok());
  std::filesystem::rename(report, place.top + "/site/aside");
  REQUIRE(::symlink(victim.c_str(), report.c_str()) == 0);
  report::ReportInput input;
  input.conflicts = {{"a/b", false, "text"}};
  REQUIRE(report::WriteReport(directory.value().at(), input).ok());
  REQUIRE(directory.value().PrepareBelow("checks/1").ok());
  CHECK(sys::ReadFile(victim + "/run.json", 99).value() == "precious");
  CHECK_FALSE(sys::Exists(victim + "/conflicts"));
  CHECK_FALSE(sys::Exists(victim + "/checks/1/events.log"));
  for (const char* name : {"/run.json", "/conflicts/a/b", "/checks/1/events.log"}) {
    CHECK(sys::Exists(place.top + "/site/aside" + name));
  }
}

TEST_CASE("Only what a report is made of is removed") {
  Place place;
  const std::string site = place.top + "/site";
  const Fd top = sys::Open(site, O_RDONLY | O_DIRECTORY).value();
  REQUIRE(ReportDirectory::Prepare(site + "/report").ok());
  RemoveReport(top.get(), "report");
  CHECK_FALSE(sys::Exists(site + "/report"));
  REQUIRE(ReportDirectory::Prepare(site + "/report").ok());
  REQUIRE(sys::WriteFile(site + "/report/precious", "x").ok());
  RemoveReport(top.get(), "report");
  CHECK(sys::Exists(site + "/report/precious"));
  CHECK_FALSE(sys::Exists(site + "/report/events.log"));
  REQUIRE(::symlink("report", (site + "/link").c_str()) == 0);
  RemoveReport(top.get(), "link");
  CHECK(sys::Exists(site + "/report/precious"));
}

}  // namespace
}  // namespace run
