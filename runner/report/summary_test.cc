// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

ReportInput Sample() {
  ReportInput input;
  RunRecord& record = input.record;
  record.started_at_ms = 1000000;
  record.finished_at_ms = 1082000;
  record.outcome = {OutcomeKind::kSuccess, "", "", 0, 0};
  record.policy = {"repository", ".agentic-ci/openshell-policy.yml", "main", "0b4f3c2a", ""};
  record.trust = {"trusted", "octocat may write"};
  record.agent = {"claude-code", "", "2.1.197", "", {}};
  record.usage = {"claude-opus-4-8", 2, 1, 3600, 120, 900, 150, 0.0224, true};
  record.usage.cost_source = "gateway";
  record.changes = {2, 12, 4, 900, false, true};
  record.isolation = {"namespaces",
                      std::string(32, 'd'),
                      {{"landlock", ControlState::kEnforced, "ABI 4"},
                       {"memory", ControlState::kEmulated, "watchdog"}}};
  record.limits = {{"wall", 1200, 82, "s", false}, {"memory", 1024, 1024, "bytes", true}};
  DeniedRequest denied;
  denied.denial = {"h.example", 443, "POST", "/v1/x", "/usr/bin/curl"};
  denied.reason = "no policy allows this host";
  denied.count = 3;
  denied.allow_line = "h.example:443:read-write";
  record.denials = {denied};
  input.files = {{"src/a.c", "", FileState::kModified, "100644", "100644", false, 12, 4, 80},
                 {"logo.png", "", FileState::kCreated, "", "100644", true, 0, 0, 80}};
  input.agent_text = "I fixed it.\n";
  return input;
}

constexpr char kExpected[] =
    R"(### ⚠️ Done: 2 files changed (+12 −4). 3 requests refused, 1 limit reached.

`claude-code` · `claude-opus-4-8` · 1 min 22 s · $0.0224 · policy `main@0b4f3c2`

<details><summary>Changed files (2)</summary>

| Changed | | + | − |
|---|---|--:|--:|
| `src/a.c` | modified | 12 | 4 |
| `logo.png` | created, binary |  |  |

The patch is not part of the report.

</details>

<details><summary>Refused requests (3)</summary>

| Host | Times | Request | By | Why |
|---|--:|---|---|---|
| `h.example:443` | 3 | `POST /v1/x` | `/usr/bin/curl` | no policy allows this host |

If the agent needs these requests, allow them by adding this to `.agentic-ci/openshell-policy.yml` (`policy-suggestion.yml` has the same hosts, and no more than these requests):

```yaml
# Each entry opens a way for data to leave, and a manipulated agent asks for what its attacker wants.
endpoints:
  - "h.example:443:read-write"
```

</details>

<details><summary>The agent's own words (not verified)</summary>

I fixed it.

</details>

<details><summary>Sandbox</summary>

- **Policy:** `.agentic-ci/openshell-policy.yml at main (0b4f3c2)` · trusted: octocat may write
- **Isolation:** `namespaces`; enforced: landlock; emulated: memory (watchdog)
- **Limits:** wall 1 min 22 s of 20 min · **memory 1 KiB of 1 KiB (reached)**
- **Usage:** 2 turns, 1 tool call, 4,650 tokens in (900 from cache), 120 out

</details>
)";

TEST_CASE("The summary says outcome, changes, refusals and the line that would allow them") {
  CHECK(RenderSummary(Sample()) == kExpected);
}

TEST_CASE("What is judged by operation is shown with the rule that would allow it") {
  ReportInput input = Sample();
  advise::Denial& denial = input.record.denials[0].denial;
  denial.protocol = "mcp";
  denial.operations = {{"", "", {}, "", "tools/call", "drop_tables"}};
  input.record.denials[0].allow_line = advise::SuggestLine(denial);
  const std::string out = RenderSummary(input);
  CAPTURE(out);
  CHECK(out.find("| `POST /v1/x: tools/call drop_tables` |") != std::string::npos);
  CHECK(out.find("```yaml\n# " + std::string(advise::kSuggestionWarning) +
                 "\n# h.example:443/v1/x\n"
                 "rules: [{allow: {method: 'tools/call', tool: 'drop_tables'}}]\n```") !=
        std::string::npos);
  CHECK(out.find("endpoints:") == std::string::npos);
}

TEST_CASE("A pinned image's digest is said once") {
  ReportInput input = Sample();
  input.record.image.reference = "ghcr.io/a/b@sha256:0123";
  input.record.image.digest = "sha256:0123";
  CHECK(RenderSummary(input).find("`ghcr.io/a/b@sha256:0123` not signed") != std::string::npos);
  input.record.image.reference = "ghcr.io/a/b:v1";
  CHECK(RenderSummary(input).find("`ghcr.io/a/b:v1` `sha256:0123` not signed") !=
        std::string::npos);
}

TEST_CASE("A run that was refused says so first, and why") {
  ReportInput input = Sample();
  input.record.outcome = {OutcomeKind::kRefused, "", "a gate refused the changes", 77, 0};
  input.record.findings = {
      {FindingSource::kGate, "secrets", Severity::kError, "a token (ghp_…)", "src/a.c", 3, true}};
  const std::string out = RenderSummary(input);
  CHECK(out.find("### ⛔ Refused: secret `src/a.c:3`. Nothing was applied.\n\n") == 0);
  CHECK(out.find("<details open><summary>Gates (1)</summary>") != std::string::npos);
  CHECK(out.find("| ⛔ refused | `secrets` | `src/a.c:3` | a token &#40;ghp&#95;…&#41; |\n") !=
        std::string::npos);
}

TEST_CASE("A review shows its counts, the worst findings and the agent's words unfolded") {
  ReportInput input;
  input.record.outcome = {OutcomeKind::kSuccess, "", "", 0, 0};
  input.record.agent.task = "review";
  input.record.event.leg = "node: 20";
  input.record.event.actor = "octocat";
  input.record.event.head_sha = std::string(40, 'a');
  const auto add = [&](Severity severity, const char* message) {
    input.record.findings.push_back(
        {FindingSource::kAgent, "bug", severity, message, "src/a.c", 3});
  };
  add(Severity::kNote, "minor");
  for (int i = 0; i < 2; ++i) add(Severity::kWarning, "odd");
  add(Severity::kError, "wrong");
  input.agent_text = "One **defect** in `add`: [see](https://x.example).";
  const SummaryOptions options = {.pages = {"https://f.example/o/r", "github"},
                                  .since = "2 fixed, 1 new since `ed864d1`"};
  const std::string out = RenderSummary(input, options);
  CAPTURE(out);
  CHECK(
      out.starts_with("### ⚠️ review, node: 20 · Done: "
                      "1 error, 2 warnings, 1 note. No changes.\n\n"));
  CHECK(out.find("commit [`aaaaaaa`](<https://f.example/o/r/commit/" + std::string(40, 'a') +
                 ">) · asked by octocat") != std::string::npos);
  CHECK(out.find("\n\n2 fixed, 1 new since `ed864d1`\n\n"
                 "- **error** `src/a.c:3` wrong (`bug`)\n"
                 "- **warning** `src/a.c:3` odd (`bug`)\n"
                 "- **warning** `src/a.c:3` odd (`bug`)\n\n"
                 "**The agent's own words (not verified)**\n\n"
                 "One **defect** in `add`&#58; &#91;see") != std::string::npos);
  CHECK(out.find("minor") > out.find("<details><summary>Findings of the agent (4)"));
  // A table that would only repeat the list is left out.
  input.record.findings.pop_back();
  input.record.findings[0].message = "`a||b` is **odd**; see `x";
  const std::string few = RenderSummary(input, options);
  CHECK(few.find("(`bug`)\n- **note** `src/a.c:3` `a││b` is **odd**&#59; see &#96;x (`bug`)\n") !=
        std::string::npos);
  CHECK(few.find("Findings of the agent") == std::string::npos);
  // Where a gate refused, that comes first.
  input.record.outcome = {OutcomeKind::kRefused, "", "", 77, 0};
  input.record.findings.push_back(
      {FindingSource::kGate, "secrets", Severity::kError, "a token", "a", 1, true});
  const std::string refused = RenderSummary(input, options);
  CHECK(refused.find("- **error**") == std::string::npos);
  CHECK(refused.find("<details open><summary>Gates (1)") < refused.find("own words"));
}

TEST_CASE("An agent that failed after requests were refused is shown with their hosts") {
  ReportInput input = Sample();
  input.record.outcome = {OutcomeKind::kAgentFailed, "", "the agent exited with 1", 1, 1};
  CHECK(RenderSummary(input).starts_with(
      "### ❌ Failed: The agent exited with 1. Requests were refused: `h.example`."));
}

TEST_CASE("Every outcome has a headline of its own") {
  ReportInput input;
  input.record.outcome = {OutcomeKind::kLimit, "memory", "", 125, 137};
  CHECK(RenderSummary(input).find("### ⏱️ Memory limit: The memory limit ended the run.\n") ==
        0);
  input.record.outcome.kind = OutcomeKind::kTimedOut;
  CHECK(RenderSummary(input).find("### ⏱️ Time limit: The time limit ended the run.\n") == 0);
  input.record.outcome.kind = OutcomeKind::kSetupFailed;
  CHECK(RenderSummary(input).find("### ❌ Not started: The run did not start.\n") == 0);
}

// Lines of `markdown` that are outside of every fence.
std::string OutsideFences(const std::string& markdown) {
  std::string out;
  std::string fence;
  for (size_t at = 0; at < markdown.size();) {
    const size_t end = markdown.find('\n', at);
    const std::string line = markdown.substr(at, end - at);
    at = end == std::string::npos ? markdown.size() : end + 1;
    const std::string ticks = line.substr(0, line.find_first_not_of('`'));
    // CommonMark 4.5: what follows an opening fence has no backtick in it.
    const bool opens = ticks.size() >= 3 && line.find('`', ticks.size()) == std::string::npos;
    if (fence.empty() && opens) {
      fence = ticks;
    } else if (!fence.empty() && line.size() >= fence.size() && ticks == line) {
      fence.clear();
    } else if (fence.empty()) {
      out += line + "\n";
    }
  }
  CHECK(fence.empty());
  return out;
}

// `markdown` without its code spans, as CommonMark 6.1 finds them.
std::string OutsideCode(const std::string& markdown) {
  std::string out;
  for (size_t at = 0; at < markdown.size();) {
    if (markdown[at] != '`') {
      out += markdown[at++];
      continue;
    }
    size_t run = 0;
    while (at + run < markdown.size() && markdown[at + run] == '`') ++run;
    size_t close = at + run;
    for (size_t length = 0; close < markdown.size(); close += length + 1) {
      length = 0;
      while (close + length < markdown.size() && markdown[close + length] == '`') ++length;
      if (length == run) break;
    }
    REQUIRE(close < markdown.size());
    at = close + run;
  }
  return out;
}

TEST_CASE("Nothing from outside is markup in the summary, wherever it stands") {
  const std::string bad =
      "x\xff\x1b[31m\u202e</details><script>\n```\n@octocat #77 `@y` |a|b\\| "
      "![i](https://e.example) "
      "<!-- \n# h\n/close\n````\n";
  ReportInput input = Sample();
  RunRecord& record = input.record;
  record.outcome = {OutcomeKind::kLimit, bad, bad, 125, 1};
  record.policy.path = record.policy.ref = bad;
  record.trust = {bad, bad};
  record.agent.name = record.usage.model = bad;
  record.isolation = {bad, bad, {{bad, ControlState::kUnavailable, bad}}};
  record.limits = {{bad, 1, 2, bad, true}};
  record.waivers = {{bad, bad}};
  record.image = {bad, bad, bad, bad, bad, bad, bad, {bad}, {bad}};
  record.findings = {{FindingSource::kAgent, bad, Severity::kError, bad, bad, 1, true}};
  record.denials[0].denial = {bad, 1, bad, bad, bad};
  record.denials[0].reason = record.denials[0].allow_line = record.denials[0].deny_rule = bad;
  record.denials.push_back(record.denials[0]);
  record.denials[1].denial.operations = {{bad, bad, {bad, bad}, bad, "", ""},
                                         {"", "", {}, "", bad, bad}};
  record.denials.push_back(record.denials[1]);
  record.denials[2].allow_line = "rules: [{allow: {method: 'x'}}]";
  input.files[0].path = input.files[0].old_path = bad;
  input.agent_text = bad;
  const std::string out = OutsideCode(OutsideFences(RenderSummary(input)));
  CAPTURE(out);
  for (const char* forbidden : {"<script", "<!--", "@octocat", "@y", "#77", "![", "](", "https://",
                                "\n/close", "\n# h", "\u202e", "\x1b", "\xff"}) {
    CAPTURE(forbidden);
    CHECK(out.find(forbidden) == std::string::npos);
  }
  // Only our own tags are left: two blocks open and close.
  size_t details = 0;
  for (size_t at = out.find("</details>"); at != std::string::npos;
       at = out.find("</details>", at + 1)) {
    ++details;
  }
  CHECK(details == 5);
}

TEST_CASE("A small patch stands open as a diff; a long one is folded and says that it was cut") {
  ReportInput input = Sample();
  input.patch =
      "diff --git a/src/a.c b/src/a.c\nindex 1..2 100644\n--- a/src/a.c\n+++ b/src/a.c\n"
      "@@ -1 +1 @@\n-old ```\n+new\ndiff --git a/logo.png b/logo.png\nGIT binary patch\n"
      "literal 1\nIcmZ\n";
  CHECK(RenderSummary(input).find("\n````diff\ndiff --git a/src/a.c b/src/a.c\n@@ -1 +1 @@\n"
                                  "-old ```\n+new\ndiff --git a/logo.png b/logo.png\n"
                                  "(binary)\n````\n") != std::string::npos);
  for (int i = 0; i < 5000; ++i) input.patch += "+x\n";
  input.patch += "@@ -1 +1 @@\n";
  for (int i = 0; i < 9000; ++i) input.patch += "+line\n";
  const std::string out = RenderSummary(input);
  CHECK(out.find("<details><summary>Diff (2 files)</summary>") != std::string::npos);
  CHECK(out.find("The diff is cut here; all of it is in `changes.patch`.") != std::string::npos);
  CHECK(out.size() < 30000);
}

TEST_CASE("For a run beneath the top, the summary says how to apply its patch") {
  ReportInput input = Sample();
  input.patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
  CHECK(RenderSummary(input).find("git apply") == std::string::npos);
  input.record.changes.prefix = "pkg/my app/";
  CHECK(RenderSummary(input).find(
            "`git apply --directory='pkg/my app/' changes.patch` at the top") != std::string::npos);
}

TEST_CASE("Similar hosts are one row, and no rule is suggested for them") {
  ReportInput input = Sample();
  for (int i = 1; i <= 45; ++i) {
    DeniedRequest denied = input.record.denials[0];
    denied.denial.host = "h" + std::to_string(i) + ".example";
    denied.allow_line = denied.denial.host + ":443:read-write";
    denied.count = 1;
    input.record.denials.push_back(denied);
  }
  const std::string out = RenderSummary(input);
  CHECK(out.find("| `h{1…45}.example:443` | 45 |") != std::string::npos);
  CHECK(out.find("\"h.example:443:read-write\"") != std::string::npos);
  CHECK(out.find("h7.example:443:read-write") == std::string::npos);
}

TEST_CASE("A summary that would be too long shows less, and still ends well") {
  ReportInput input = Sample();
  for (int i = 0; i < 3000; ++i) {
    input.files.push_back(input.files[0]);
    input.record.denials.push_back(input.record.denials[0]);
    input.record.findings.push_back({FindingSource::kGate, "r", Severity::kNote,
                                     std::string(2000, '*'), std::string(2000, '`'), 1, false});
  }
  input.agent_text = std::string(1000000, '`') + "\n";
  const std::string out = RenderSummary(input);
  CHECK(out.size() <= 60000);
  CHECK(out.find("more in `changes.json`") != std::string::npos);
  CHECK(out.substr(out.size() - 11) == "</details>\n");
  OutsideFences(out);
  CHECK(RenderSummary(input, {.bytes_max = 50}).size() <= 50);
}

TEST_CASE("Only an https address becomes a link, and only one that the caller gives") {
  const std::string out = RenderSummary(Sample(), {.report_url = "https://ci.example/1#artifacts",
                                                   .run_url = "https://ci.example/1"});
  CHECK(
      out.find(" · [run](<https://ci.example/1>) · [report](<https://ci.example/1#artifacts>)\n") !=
      std::string::npos);
  for (const char* url : {"javascript:x", "https://a\n", "https://a>b", "ftp://a"}) {
    CHECK(RenderSummary(Sample(), {.report_url = url}).find("[report]") == std::string::npos);
  }
  ReportInput input = Sample();
  input.record.event.run_url = "https://evil.example/";
  CHECK(RenderSummary(input).find("evil") == std::string::npos);
}

}  // namespace
}  // namespace report
