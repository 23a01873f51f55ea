// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/live_view.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace report {
namespace {

constexpr TerminalStyle kPlain = {true, false};
constexpr TerminalStyle kColour = {true, true};

std::string Record(const std::string& decision, const std::string& host,
                   const std::string& path = "/x") {
  return R"({"class_uid":4002,"unmapped":{"decision":")" + decision + R"(","host":")" + host +
         R"(","port":443,"method":"GET","path":")" + path +
         R"(","binary":"/usr/bin/curl","pid":7,"reason":"not in policy"}})" + "\n";
}

// A file that grows, as the gateway's does.
class Events {
 public:
  Events() : file_(::mkstemp(path_)) { REQUIRE(file_.valid()); }
  ~Events() { ::unlink(path_); }
  std::string path() const { return path_; }
  void Append(const std::string& text) { REQUIRE(sys::WriteAll(file_.get(), text).ok()); }

 private:
  char path_[32] = "/tmp/live-view-XXXXXX";
  Fd file_;
};

TEST_CASE("Each different request is shown once, when its record is whole") {
  Events events;
  LiveView view(events.path(), kPlain);
  CHECK(view.TakeLines().empty());
  const std::string record = Record("denied", "paste.example");
  events.Append(record.substr(0, 40));
  CHECK(view.TakeLines().empty());
  events.Append(record.substr(40) + record + Record("allowed", "api.example"));
  CHECK(view.TakeLines() ==
        "✗ GET paste.example:443/x                       curl  not in policy\n"
        "✓ GET api.example:443/x                         curl\n");
  CHECK(view.RenderStatus(12, 80) == "1 allowed, 2 refused | 12 s");
  CHECK(view.RenderStatus(12, 10) == "1 allowed");
}

TEST_CASE("What an agent chose cannot be an escape sequence") {
  Events events;
  LiveView view(events.path(), kPlain);
  events.Append(
      Record("denied", "x.example", R"(/\u001b[2J\u001b]0;title\u0007\u202e\r\n::add-mask::)"));
  const std::string line = view.TakeLines();
  CHECK(line.find("x.example") != std::string::npos);
  CHECK(line.find_first_of("\x1b\r\x07") == std::string::npos);
  CHECK(line.find("\u202e") == std::string::npos);
  CHECK(line.find('\n') == line.size() - 1);
}

TEST_CASE("A flood of requests ends the list, not the count") {
  Events events;
  LiveView view(events.path(), kPlain);
  for (int i = 0; i < 1000; ++i) {
    events.Append(Record("denied", "h" + std::to_string(i) + ".example"));
  }
  std::string lines = view.TakeLines();
  lines += view.TakeLines();
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 200);
  CHECK(lines.find("… further requests are in events.log\n") != std::string::npos);
  CHECK(view.RenderStatus(1, 80).starts_with("0 allowed, 1,000 refused"));
}

TEST_CASE("Nothing is followed where no terminal is live") {
  Events events;
  LiveView view(events.path(), {});
  events.Append(Record("denied", "paste.example"));
  CHECK(view.TakeLines().empty());
}

RunRecord Refused() {
  RunRecord record;
  record.outcome = {OutcomeKind::kRefused, "", "a gate refused the changes", 77, 0};
  record.changes = {1, 1, 0, 10, false, true};
  record.findings = {{FindingSource::kGate, "protected-paths", Severity::kError,
                      "forge configuration", "ci\x1b[31m.yml", 0, true}};
  return record;
}

TEST_CASE("The end says what refused the changes, and links to the page") {
  CHECK(RenderEnd(Refused(), "/tmp/r", kPlain) ==
        "✗ Refused  protected path ci.yml. Nothing was applied.\n"
        "  ✗ ci.yml  protected-paths: forge configuration\n"
        "  1 file changed (+1 −0) · 0 s · /tmp/r/report.html\n");
  const std::string colour = RenderEnd(Refused(), "/tmp/a\x1b b/r", kColour);
  CHECK(colour.find("\x1b]8;;file:///tmp/a%1B%20b/r/report.html\x1b\\") != std::string::npos);
  CHECK(colour.find("\x1b[31m.yml") == std::string::npos);
}

TEST_CASE("The end of a run of one's own says how to apply its patch, and no other end does") {
  RunRecord record;
  record.outcome = {OutcomeKind::kSuccess, "", "", 0, 0};
  record.changes = {1, 1, 0, 10, false, true};
  CHECK(RenderEnd(record, "/r x", kPlain)
            .ends_with("\n  apply it: git apply '/r x/changes.patch' (or run with --apply)\n"));
  record.outcome.kind = OutcomeKind::kFindings;  // They say nothing about the patch.
  CHECK(RenderEnd(record, "/r", kPlain).find("git apply /r/changes.patch") != std::string::npos);
  record.changes.prefix = "app/";
  CHECK(RenderEnd(record, "/r", kPlain).find("git apply --directory=app/ /r/changes.patch") !=
        std::string::npos);
  record.changes.applied = true;
  CHECK(RenderEnd(record, "/r", kPlain).find("git apply") == std::string::npos);
  record.changes.applied = false;
  record.event.forge = "github";
  CHECK(RenderEnd(record, "/r", kPlain).find("git apply") == std::string::npos);
  CHECK(RenderEnd(Refused(), "/r", kPlain).find("git apply") == std::string::npos);
}

TEST_CASE("The end names what no patch carries") {
  RunRecord record;
  record.findings = {{FindingSource::kGate, kLostRefRule, Severity::kWarning,
                      "the agent's branch x is not part of the patch", "", 0, false},
                     {FindingSource::kGate, "left-out", Severity::kWarning, "other", "", 0, false}};
  const std::string end = RenderEnd(record, "/tmp/r", kPlain);
  CHECK(end.find("\n  ! the agent's branch x is not part of the patch\n") != std::string::npos);
  CHECK(end.find("other") == std::string::npos);
}

TEST_CASE("The start is one line") {
  RunRecord record;
  record.policy = {"repository", "p.yml", "main", "6d05064abc", ""};
  record.phases_ms = {{"gateway", 3}, {"sandbox", 8}};
  record.isolation = {
      "namespaces",
      "",
      {{"landlock", ControlState::kEnforced, ""}, {"memory", ControlState::kEmulated, ""}}};
  CHECK(RenderStart(record, kPlain) ==
        "● policy main@6d05064 · sandbox 8 ms · 1 of 2 controls enforced\n");
}

}  // namespace
}  // namespace report
