// SPDX-License-Identifier: Apache-2.0
// Writes and reads back, with a directory in between.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"
#include "report/denials.h"
#include "report/read.h"
#include "report/record_json.h"
#include "report/write.h"

namespace report {
namespace {

namespace fs = std::filesystem;

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/report_test_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Directory() { fs::remove_all(path_); }
  std::string path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

ReportInput Sample() {
  ReportInput input;
  input.record.outcome = {OutcomeKind::kSuccess, "", "", 0, 0};
  input.record.changes = {1, 1, 0, 4, false, true};
  DeniedRequest denied;
  denied.denial = {"h.example", 443, "", "", "/usr/bin/curl"};
  denied.allow_line = advise::SuggestLine(denied.denial);
  input.record.denials = {denied};
  input.files = {{"a", "", FileState::kCreated, "", "100644", false, 1, 0, 2}};
  input.patch = std::string("+a\xff\0", 4);
  input.agent_text = "bye";
  return input;
}

void Replace(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = sys::ReadFile(file, 1 << 20).value();
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(sys::WriteFile(file, text.replace(at, from.size(), to)).ok());
}

TEST_CASE("WriteReport leaves every file of the directory, whole and alone") {
  Directory directory;
  ReportInput input = Sample();
  input.prompt = "Look for the word xylophone.";
  REQUIRE(WriteReport(directory.path(), input).ok());
  CHECK(sys::ReadFile(directory / "prompt.txt", 100).value() == input.prompt);
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path())) {
    names.push_back(entry.path().filename());
    CHECK(fs::file_size(entry.path()) > 0);
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"changes.json", "changes.patch", "findings.sarif",
                                          "gl-code-quality-report.json", "gl-sast-report.json",
                                          "policy-suggestion.yml", "prompt.txt", "report.html",
                                          "run.json", "summary.md"});
  CHECK(sys::ReadFile(directory / "changes.patch", 100).value() == std::string("+a\xff\0", 4));
}

TEST_CASE("WriteReport writes through no link that somebody left in the directory") {
  Directory directory;
  REQUIRE(sys::WriteFile(directory / "precious", "mine").ok());
  for (const char* name : {"run.json", ".run.json.new", "summary.md"}) {
    fs::create_symlink("precious", directory / name);
  }
  REQUIRE(WriteReport(directory.path(), Sample()).ok());
  CHECK(sys::ReadFile(directory / "precious", 100).value() == "mine");
  CHECK_FALSE(fs::is_symlink(directory / "run.json"));
}

TEST_CASE("WriteReport fails when there is no directory, and when a name is taken") {
  CHECK_FALSE(WriteReport("/nonexistent/report", Sample()).ok());
  Directory directory;
  fs::create_directories(directory / "run.json/x");
  Status written = WriteReport(directory.path(), Sample());
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().code == Code::kIo);
  CHECK(written.error().what.find("writing run.json: ") == 0);
  CHECK_FALSE(fs::exists(directory / ".run.json.new"));
}

TEST_CASE("ReadReport gives back what WriteReport wrote") {
  Directory directory;
  REQUIRE(WriteReport(directory.path(), Sample()).ok());
  PostedReport report = ReadReport(directory.path()).value();
  CHECK(report.record.outcome.kind == OutcomeKind::kSuccess);
  CHECK(report.files.at(0).path == "a");
  CHECK(report.patch == std::string("+a\xff\0", 4));
  CHECK(report.summary_markdown == sys::ReadFile(directory / "summary.md", 1 << 20).value());
}

TEST_CASE("ReadReport makes the summary and the advice anew instead of believing them") {
  Directory directory;
  REQUIRE(WriteReport(directory.path(), Sample()).ok());
  REQUIRE(sys::WriteFile(directory / "summary.md", "@everybody").ok());
  Replace(directory / "run.json", Sample().record.denials[0].allow_line, "evil.example:443:full");
  PostedReport report = ReadReport(directory.path()).value();
  CHECK(report.summary_markdown.find("@everybody") == std::string::npos);
  CHECK(report.summary_markdown.find("evil.example") == std::string::npos);
  CHECK(report.summary_markdown.find(Sample().record.denials[0].allow_line) != std::string::npos);
  // A denial that the policy did not decide gets none.
  Replace(directory / "run.json", "evil.example:443:full", "");
  report = ReadReport(directory.path()).value();
  CHECK(report.summary_markdown.find(Sample().record.denials[0].allow_line) == std::string::npos);
}

TEST_CASE("ReadReport follows no link, opens nothing that blocks, and names what is wrong") {
  Directory directory;
  CHECK(ReadReport(directory.path()).error().code == Code::kNotFound);
  CHECK(ReadReport(directory / "none").error().code == Code::kNotFound);
  REQUIRE(WriteReport(directory.path(), Sample()).ok());

  fs::rename(directory / "changes.patch", directory / "elsewhere");
  CHECK(ReadReport(directory.path()).value().patch.empty());
  fs::create_symlink("elsewhere", directory / "changes.patch");
  Result<PostedReport> linked = ReadReport(directory.path());
  CHECK(linked.error().code == Code::kInvalid);
  CHECK(linked.error().what.find("changes.patch: ") == 0);

  fs::remove(directory / "changes.patch");
  REQUIRE(::mkfifo((directory / "changes.patch").c_str(), 0600) == 0);
  CHECK(ReadReport(directory.path()).error().what == "changes.patch: not a regular file");
  fs::remove(directory / "changes.patch");

  Replace(directory / "run.json", "\"success\"", "\"great\"");
  CHECK(ReadReport(directory.path()).error().what == "run.json: outcome.kind: unknown value");
  fs::resize_file(directory / "run.json", (size_t{16} << 20) + 1);
  CHECK(ReadReport(directory.path()).error().code == Code::kInvalid);
}

TEST_CASE("ReadDenials reads the events of a run, lines without bound included") {
  Directory directory;
  const std::string line =
      R"({"class_uid":4001,"action_id":2,"unmapped":{"host":"h.example","port":443}})";
  REQUIRE(sys::WriteFile(directory / "events.ocsf.jsonl",
                         line + "\n" + std::string(500000, 'x') + "\n" + line)
              .ok());
  const DenialList list = ReadDenials(directory.path()).value();
  REQUIRE(list.denials.size() == 1);
  CHECK(list.denials[0].count == 2);
  CHECK(list.dropped == 1);
}

}  // namespace
}  // namespace report
