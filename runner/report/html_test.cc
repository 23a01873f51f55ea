// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kPatch =
    "diff --git a/a.c b/a.c\nindex 1..2 100644\n--- a/a.c\n+++ b/a.c\n@@ -10,2 +20,2 @@ f(void)\n"
    " same <b>\n-old\n+new\n";

TEST_CASE("A patch is shown with the numbers of its lines, and without headers that say nothing") {
  const std::string out = RenderPatchHtml(
      kPatch, {{"a.c", "", FileState::kModified, "100644", "100755", false, 1, 1, 5}});
  CHECK(Contains(out, "<code>a.c</code> <span class=\"tag modified\">modified</span>"));
  CHECK(Contains(out, "executable"));
  CHECK(Contains(out, "<span class=\"c\" data-n=\"20\"> same &#60;b&#62;\n</span>"));
  CHECK(Contains(out, "<span class=\"d\" data-n=\"11\">-old\n</span>"));
  CHECK(Contains(out, "<span class=\"a\" data-n=\"21\">+new\n</span>"));
  CHECK_FALSE(Contains(out, "index 1..2"));
}

TEST_CASE("A line of a hunk that looks like a header is shown") {
  const std::string out = RenderPatchHtml(kPatch + "--- x\n+++ y\n", {});
  CHECK(Contains(out, "--- x"));
  CHECK(Contains(out, "+++ y"));
}

TEST_CASE("A long patch is cut and says so") {
  std::string patch = kPatch;
  for (int i = 0; i < 20000; ++i) patch += "+x\n";
  const std::string out = RenderPatchHtml(patch + kPatch, {});
  CHECK(Contains(out, "… more in changes.patch"));
  CHECK(Contains(out, "1 file more in <code>changes.patch</code>"));
  CHECK(out.size() < 1000000);
}

TEST_CASE("The page runs nothing, loads nothing, and escapes everything from outside") {
  const std::string bad = "</pre></style><script>alert(1)</script>\"'\u202e<img src=x onerror=y>";
  ReportInput input;
  RunRecord& record = input.record;
  record.outcome = {OutcomeKind::kLimit, bad, bad, 125, 1};
  record.tool_version = record.kernel = bad;
  record.event = {bad, bad, bad, 1, bad, bad, bad, bad, bad, true, bad};
  record.policy = {bad, bad, bad, bad, bad};
  record.trust = {bad, bad};
  record.image = {bad, bad, bad, bad, bad, bad, bad, {bad}, {bad}};
  record.agent = {bad, bad, bad, {bad}};
  record.usage.model = bad;
  record.isolation = {bad, {{bad, ControlState::kUnavailable, bad}}};
  record.limits = {{bad, 1, 2, bad, true}};
  record.waivers = {{bad, bad}};
  record.phases_ms = {{bad, 1}};
  record.findings = {{FindingSource::kAgent, bad, Severity::kError, bad, bad, 1, true}};
  DeniedRequest denied;
  denied.denial = {bad, 1, bad, bad, bad};
  denied.reason = denied.allow_line = denied.deny_rule = bad;
  record.denials = {denied, denied, denied};
  record.denials[1].denial.operations = {{bad, bad, {bad}, bad, bad, bad}};
  record.denials[2] = record.denials[1];
  record.denials[2].allow_line = "rules: [{allow: {method: 'x'}}]";
  input.files = {{bad, bad, FileState::kRenamed, bad, bad, false, 1, 1, 1}};
  input.patch = "diff --git " + bad + "\n@@ " + bad + "\n+" + bad + "\n";
  input.agent_text = bad;
  const std::string out = RenderHtml(input);
  for (const char* forbidden : {"<script", "<img", "\u202e", "onerror=y>", "http://", "https://",
                                "url(", "@import", "javascript:"}) {
    CAPTURE(forbidden);
    CHECK_FALSE(Contains(out, forbidden));
  }
  CHECK(Contains(out, "default-src 'none'"));
  CHECK(Contains(out, "rules: [{allow: {method: "));
  size_t styles = 0;
  for (size_t at = out.find("</style>"); at != std::string::npos;
       at = out.find("</style>", at + 1)) {
    ++styles;
  }
  CHECK(styles == 1);
}

TEST_CASE("The page of an empty run says that there was nothing") {
  const std::string out = RenderHtml({});
  CHECK(Contains(out, "The run did not start: no changes"));
  CHECK(Contains(out, "<p class=\"soft\">Nothing.</p>"));
  CHECK(Contains(out, "<p class=\"soft\">None.</p>"));
}

}  // namespace
}  // namespace report
