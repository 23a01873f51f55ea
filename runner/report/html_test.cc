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
    " same <b>\n-price - percent\n+price * percent\n";

ReportInput WithPatch(const std::string& patch, const std::vector<ChangedFile>& files) {
  ReportInput input;
  input.patch = patch;
  input.files = files;
  return input;
}

const ChangedFile kFile = {"a.c", "", FileState::kModified, "100644", "100755", false, 1, 1, 5};

TEST_CASE("A patch has the numbers of both sides, marked words, and no headers that say nothing") {
  const std::string out = RenderHtml(WithPatch(kPatch, {kFile}));
  CHECK(Contains(out, "<code>a.c</code> <span class=\"tag plain\">modified</span>"));
  CHECK(Contains(out, "executable +x"));
  CHECK(Contains(out, "<tr><td>10</td><td>20</td><td>same &#60;b&#62;</td></tr>"));
  CHECK(Contains(out, "<tr class=\"d\"><td>11</td><td></td><td>price <del>-</del> percent</td>"));
  CHECK(Contains(out, "<tr class=\"a\"><td></td><td>21</td><td>price <ins>*</ins> percent</td>"));
  CHECK_FALSE(Contains(out, "index 1..2"));
}

TEST_CASE("The tier is named on the first screen, with its controls or without") {
  ReportInput input = WithPatch(kPatch, {kFile});
  CHECK_FALSE(Contains(RenderHtml(input), "tier landlock"));
  input.record.isolation.tier = "landlock";
  const std::string bare = RenderHtml(input);
  CHECK(bare.find("<span class=\"part\">tier landlock</span>") < bare.find("<nav class=\"tabs\""));
  input.record.isolation.controls.push_back({"network", ControlState::kEnforced, ""});
  CHECK(Contains(RenderHtml(input), "✓ tier landlock, 1 of 1 control enforced</span>"));
}

TEST_CASE("A line of a hunk that looks like a header is shown") {
  const std::string out = RenderHtml(WithPatch(kPatch + "--- x\n+++ y\n", {}));
  CHECK(Contains(out, "-- x"));
  CHECK(Contains(out, "++ y"));
}

TEST_CASE("A finding stands beside its line, and the cause links to it") {
  ReportInput input = WithPatch(kPatch, {kFile});
  input.record.outcome = {OutcomeKind::kRefused, "", "a gate refused the changes", 77, 0};
  input.record.findings = {
      {FindingSource::kGate, "secrets", Severity::kError, "a token", "a.c", 21, true},
      {FindingSource::kAgent, "note", Severity::kNote, "elsewhere", "a.c", 500, false},
      {FindingSource::kAgent, "note", Severity::kNote, "of no changed file", "b.c", 1, false}};
  const std::string out = RenderHtml(input);
  const size_t line = out.find("<td>21</td>");
  REQUIRE(line != std::string::npos);
  CHECK(out.find("id=\"x0\"", line) < out.find("</table>", line));
  CHECK(out.find("id=\"x1\"") < line);  // Its line is not shown: above the file's lines.
  CHECK(Contains(out, "href=\"#x0\""));
  CHECK(Contains(out, "href=\"#x1\""));
  CHECK_FALSE(Contains(out, "#x2"));
  CHECK(Contains(out, "</span> 1 secret in the patch."));
}

TEST_CASE("Refused files stand first; a rename, a mode and a binary take one line each") {
  const std::string patch =
      kPatch +
      "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n"
      "diff --git a/z.png b/z.png\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZ\n"
      "diff --git a/z b/z\n@@ -0,0 +1 @@\n+x\n";
  ReportInput input =
      WithPatch(patch, {kFile,
                        {"n", "o", FileState::kRenamed, "100644", "100644", false, 0, 0, 5},
                        {"z.png", "", FileState::kModified, "100644", "100644", true, 0, 0, 2900},
                        {"z", "", FileState::kCreated, "", "100644", false, 1, 0, 2}});
  input.record.findings = {
      {FindingSource::kGate, "protected-paths", Severity::kError, "ci", "z", 0, true}};
  const std::string out = RenderHtml(input);
  CHECK(out.find("id=\"f3\"") < out.find("id=\"f0\""));
  CHECK(out.find("id=\"f0\"") < out.find("id=\"f1\""));
  CHECK(Contains(out, "<div class=\"file plain\" id=\"f1\"><code>o</code> → <code>n</code>"));
  CHECK(Contains(out, "<div class=\"file plain\" id=\"f2\">"));
  CHECK(Contains(out, "2.8 KiB"));
  CHECK_FALSE(Contains(out, "IcmZ"));
}

TEST_CASE("A credential in a changed line is not shown, not even where words are marked") {
  const std::string token = "ghp_" + std::string(36, 'a');
  const std::string out = RenderHtml(
      WithPatch("diff --git a/a b/a\n@@ -1 +1 @@\n-key = old\n+key = " + token + "\n", {}));
  CHECK_FALSE(Contains(out, "aaaaaaaa"));
  CHECK(Contains(out, "redacted"));
}

TEST_CASE("A long patch is folded, cut, and says so") {
  std::string patch = kPatch;
  for (int i = 0; i < 20000; ++i) patch += "+x\n";
  const std::string out = RenderHtml(WithPatch(patch + kPatch, {}));
  CHECK(Contains(out, "more lines</summary>"));
  CHECK(Contains(out, "… more in changes.patch"));
  CHECK(Contains(out, "1 more file in <code>changes.patch</code>"));
  CHECK(out.size() < 1000000);
}

TEST_CASE("The page stays bounded whatever the run was") {
  std::string patch;
  std::vector<ChangedFile> files;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "f" + std::to_string(i);
    patch += "diff --git a/" + name + " b/" + name + "\n@@ -1,2 +1,2 @@\n-" +
             std::string(3000, '<') + "\n+" + std::string(3000, '&') + "\n";
    files.push_back({name, "", FileState::kModified, "", "", false, 1, 1, 1});
  }
  ReportInput input = WithPatch(patch, files);
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    input.record.findings.push_back(
        {FindingSource::kAgent, n, Severity::kNote, std::string(5000, '<'), "f" + n, 1, false});
    DeniedRequest denied;
    denied.denial = {n + "x.a" + n + ".example", 443, "", "", ""};
    input.record.denials.push_back(denied);
    denied.denial = {"one.example", 443, "GET", std::string(4000, '/') + n, ""};
    denied.reason = std::string(300, '<');
    input.record.denials.push_back(denied);
    input.allowed.push_back({"ok" + n + "y.b" + n + ".example", 443, "GET", "/" + n, "", 1});
  }
  for (int i = 0; i < 1000; ++i) {
    input.transcript.push_back({TranscriptStep::Kind::kTool, "t", std::string(8000, '"')});
  }
  const std::string out = RenderHtml(input);
  CHECK(out.size() < (size_t{64} << 20));
  CHECK(Contains(out, "more files in <code>changes.patch</code>"));
  CHECK(Contains(out, "more in <code>events.log</code>"));
  CHECK(Contains(out, "more in <code>findings.sarif</code>"));
}

TEST_CASE("Names that differ in a number are folded, and no rule is suggested for them") {
  ReportInput input;
  for (int i = 1; i <= 45; ++i) {
    DeniedRequest denied;
    denied.denial = {"h" + std::to_string(i) + ".example.com", 443, "", "", "/usr/bin/curl"};
    denied.allow_line = denied.denial.host + ":443:read-only";
    denied.reason = "no policy";
    input.record.denials.push_back(denied);
  }
  DeniedRequest other;
  other.denial = {"paste.example.com", 443, "", "", "/usr/bin/curl"};
  other.allow_line = "paste.example.com:443:read-only";
  input.record.denials.push_back(other);
  input.allowed = {{"api.example.com", 443, "POST", "/v1/x", "/usr/bin/node", 1024}};
  const std::string out = RenderHtml(input);
  CHECK(Contains(out, "<code>h{1…45}.example.com:443</code>"));
  CHECK(Contains(out, "45 refused"));
  CHECK(Contains(out, "1,024 allowed"));
  CHECK(Contains(out, "paste.example.com:443:read-only"));
  CHECK_FALSE(Contains(out, "h7.example.com:443:read-only"));
  size_t warnings = 0;
  for (size_t at = out.find("Each entry opens"); at != std::string::npos;
       at = out.find("Each entry opens", at + 1)) {
    ++warnings;
  }
  CHECK(warnings == 1);
}

TEST_CASE("A tool call's result is folded below it") {
  ReportInput input;
  input.transcript = {{TranscriptStep::Kind::kText, "", "I will look."},
                      {TranscriptStep::Kind::kTool, "Bash ls", "command: ls\n", "a.c\n", true}};
  const std::string out = RenderHtml(input);
  CHECK(Contains(out, "<p class=\"said\">I will look.</p>"));
  CHECK(Contains(out,
                 "<details class=\"step\"><summary><b class=\"bad\">✕ failed</b> "
                 "<code>Bash ls</code></summary><pre>command: ls\n</pre><h4>Result</h4>"
                 "<pre>a.c\n</pre></details>"));
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
  record.agent = {bad, bad, bad, bad, {bad}};
  record.usage.model = bad;
  record.isolation = {bad, bad, {{bad, ControlState::kUnavailable, bad}}};
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
  input.agent_text = input.log = bad;
  input.agent_tail = {bad};
  input.allowed = {{bad, 1, bad, bad, bad, 1}};
  input.transcript = {{TranscriptStep::Kind::kTool, bad, bad, bad},
                      {TranscriptStep::Kind::kText, bad, bad},
                      {TranscriptStep::Kind::kThinking, bad, bad}};
  record.failures = {{bad, 1, bad, 1}};
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

TEST_CASE("Only an https address of the CI run is linked") {
  ReportInput input;
  input.record.event.repository = "a/b";
  input.record.event.run_url = "https://ci.example/1";
  CHECK(Contains(RenderHtml(input), "<a href=\"https://ci.example/1\""));
  for (const char* url : {"javascript:x", "https://a\"b", "https://a b", "ftp://a"}) {
    input.record.event.run_url = url;
    CHECK_FALSE(Contains(RenderHtml(input), ">run</a>"));
  }
}

TEST_CASE("The page of an empty run says that there was nothing") {
  const std::string out = RenderHtml({});
  CHECK(Contains(out, "Not started</span> The run did not start."));
  CHECK(Contains(out, "The agent changed nothing."));
  CHECK(Contains(out, "The agent asked for no host."));
}

TEST_CASE("Many findings are grouped by file and filtered without a script") {
  ReportInput input;
  input.record.outcome.kind = OutcomeKind::kSuccess;
  EventRecord& event = input.record.event;
  event.forge = "github";
  event.repository = "o/r";
  event.number = 7;
  event.head_sha = std::string(40, 'a');
  event.run_url = "https://f.example/o/r/actions/runs/1";
  for (int i = 0; i < 20; ++i) {
    input.record.findings.push_back({FindingSource::kAgent, i % 2 == 0 ? "bug" : "style",
                                     i % 5 == 0 ? Severity::kError : Severity::kNote, "wrong",
                                     i < 10 ? "src/<a>.c" : "top.c", i + 1});
  }
  input.record.findings[0].message = "`a < b` is wrong";
  input.agent_text = "I looked.";
  const std::string page = RenderHtml(input);
  const auto has = [&](const std::string& part) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  };
  has("<code>a &#60; b</code> is wrong");
  has("<h2>Findings <small>4 errors, 16 notes</small></h2>");
  has("<input type=\"radio\" name=\"by-s\" id=\"by-sall\" checked> all <small>20</small>");
  has("id=\"by-s1\"> error <small>4</small>");
  has("id=\"by-d0\"> (top) <small>10</small>");
  has("#findings:has(#by-s1:checked) .cause:not(.s1),");
  has("<summary><code>src/&#60;a&#62;.c</code> <small>10</small></summary>");
  has("<div class=\"cause s1 r0 d");
  // They come before what the agent said, and places lead to the forge.
  CHECK(page.find("src/&#60;a&#62;.c:1</code>") < page.find("own words"));
  has("<a href=\"https://f.example/o/r/blob/" + event.head_sha + "/src/%3Ca%3E.c#L1\"");
  has("<a href=\"https://f.example/o/r/pull/7\" rel=\"noreferrer\">o/r #7</a>");
  has("<a href=\"https://f.example/o/r/commit/" + event.head_sha + "\"");
  // A short list has no filters.
  input.record.findings.resize(3);
  CHECK(RenderHtml(input).find("type=\"radio\"") == std::string::npos);
}

TEST_CASE("The first card names the hosts that were refused") {
  ReportInput input;
  CHECK_FALSE(Contains(RenderHtml(input), "refused"));
  DeniedRequest denied;
  denied.count = 2;
  for (const char* host : {"a.example", "<b>"}) {
    denied.denial.host = host;
    input.record.denials.push_back(denied);
  }
  const std::string page = RenderHtml(input);
  const size_t row = page.find(
      "4 requests refused: <code>a.example</code>, "
      "<code>&#60;b&#62;</code>");
  CHECK(row < page.find("<section id=\"changes\""));
}

TEST_CASE("The transcript begins with the task") {
  ReportInput input;
  input.prompt = "Review <this>.";
  const std::string page = RenderHtml(input);
  CHECK(page.find("<summary>The task</summary><pre>Review &#60;this&#62;.</pre>") !=
        std::string::npos);
}

}  // namespace
}  // namespace report
