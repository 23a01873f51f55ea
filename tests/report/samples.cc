// SPDX-License-Identifier: Apache-2.0
// Writes the report of a run that never was: what report_test.py checks against the schemas, and
// what to open in a browser while working on the page. usage: report_samples
// full|refused|odd|empty DIRECTORY
#include <cstdio>
#include <cstring>
#include <string>

#include "base/sys.h"
#include "report/denials.h"
#include "report/test_events.h"
#include "report/write.h"

namespace {

using report::ChangedFile;
using report::ControlState;
using report::FileState;
using report::ReportInput;

constexpr char kPatch[] =
    R"(diff --git a/src/parser.c b/src/parser.c
index 3f1c2ab..9b02d11 100644
--- a/src/parser.c
+++ b/src/parser.c
@@ -41,10 +41,14 @@ static int parse_header(struct reader *r, struct header *h) {
   size_t length = read_length(r);
-  char *name = malloc(length);
-  memcpy(name, r->at, length);
+  if (length > r->left) {
+    return fail(r, "the header is longer than the file");
+  }
+  char *name = malloc(length + 1);
+  if (name == NULL) return fail(r, "out of memory");
+  memcpy(name, r->at, length);
+  name[length] = '\0';
   h->name = name;
   r->at += length;
-  r->left = r->left - length;
+  r->left -= length;
   return 0;
 }
 
diff --git a/tests/parser_test.c b/tests/parser_test.c
new file mode 100644
index 0000000..f3a1b20
--- /dev/null
+++ b/tests/parser_test.c
@@ -0,0 +1,9 @@
+#include "parser.h"
+#include "test.h"
+
+TEST(header_longer_than_file_is_refused) {
+  struct header h;
+  struct reader r = reader_of("\xff\xff", 2);
+  EXPECT(parse_header(&r, &h) != 0);
+  EXPECT_STR(r.error, "the header is longer than the file");
+}
diff --git a/docs/format.md b/docs/FORMAT.md
similarity index 100%
rename from docs/format.md
rename to docs/FORMAT.md
diff --git a/assets/logo.png b/assets/logo.png
new file mode 100644
index 0000000..f3a1b21
GIT binary patch
literal 6
NcmZQzzyJUM00961
)";

constexpr char kAgentText[] =
    "I found the cause of the crash: `parse_header` trusted the length in the file.\n\n"
    "- the length is now checked against what is left, and the name is terminated\n"
    "- `tests/parser_test.c` has a case for it\n\n"
    "I could not download the fuzzing corpus (the proxy refused it), so I did not run it.\n";

std::string Event(const char* host, int port, const char* method, const char* path,
                  const char* binary, const char* reason) {
  return std::string(R"({"class_uid":)") + (*method ? "4002" : "4001") +
         R"(,"action_id":2,"unmapped":{"host":")" + host + R"(","port":)" + std::to_string(port) +
         R"(,"method":")" + method + R"(","path":")" + path + R"(","binary":")" + binary +
         R"(","decision":"denied","reason":")" + reason + "\"}}\n";
}

void FillRun(report::RunRecord* run) {
  run->tool_version = "0.1.0";
  run->kernel = "6.8.0-1017-azure";
  run->started_at_ms = 1795294532000;
  run->finished_at_ms = 1795294614400;
  run->event = {"github",
                "pull_request",
                "octo-org/parser",
                42,
                "octocat",
                "main",
                "0b4f3c2a1d5e6f708192a3b4c5d6e7f8091a2b3c",
                "fix-crash",
                "9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1c0b",
                false,
                "https://github.com/octo-org/parser/actions/runs/1"};
  run->trust = {"trusted", "octocat may write to octo-org/parser"};
  run->policy = {"repository", ".agentic-ci/openshell-policy.yml", "main",
                 "0b4f3c2a1d5e6f708192a3b4c5d6e7f8091a2b3c", std::string(64, 'a')};
  run->agent = {"claude-code", "", "2.1.197", "claude-opus-4-8", {"/opt/claude/claude", "-p"}};
  run->isolation = {
      "namespaces",
      std::string(32, 'd'),
      {{"user namespace", ControlState::kEnforced, ""},
       {"network namespace", ControlState::kEnforced, "loopback only"},
       {"read-only root", ControlState::kEnforced, "host root, credentials masked"},
       {"landlock", ControlState::kEnforced, "ABI 4"},
       {"seccomp", ControlState::kEnforced, ""},
       {"capabilities", ControlState::kEnforced, "none, no_new_privs"},
       {"memory", ControlState::kEmulated, "watchdog every 200 ms: no writable cgroup"},
       {"cpu", ControlState::kUnavailable, "no writable cgroup"}}};
  run->limits = {{"wall", 1200, 82.4, "s", false},
                 {"memory", 4294967296.0, 1503238553.0, "bytes", false},
                 {"pids", 1024, 37, "processes", false},
                 {"disk", 8589934592.0, 18874368.0, "bytes", false},
                 {"output", 67108864, 51213, "bytes", false},
                 {"idle", std::nullopt, std::nullopt, "s", false}};
  run->outcome = {report::OutcomeKind::kSuccess, "", "", 0, 0};
  run->phases_ms = {
      {"policy", 3}, {"sandbox", 21}, {"agent", 81930}, {"changes", 34}, {"judgement", 5}};
  run->usage = {"claude-opus-4-8", 14, 22, 18240, 6120, 412300, 38110, 0.8431, true};
  run->usage.cost_source = "gateway";
}

ReportInput Full() {
  ReportInput input;
  FillRun(&input.record);
  input.record.changes = {4, 18, 3, static_cast<int64_t>(sizeof kPatch), false, true};
  input.files = {{"src/parser.c", "", FileState::kModified, "100644", "100644", false, 8, 3, 4120},
                 {"tests/parser_test.c", "", FileState::kCreated, "", "100644", false, 9, 0, 288},
                 {"docs/FORMAT.md", "docs/format.md", FileState::kRenamed, "100644", "100644",
                  false, 0, 0, 900},
                 {"assets/logo.png", "", FileState::kCreated, "", "100644", true, 0, 0, 6}};
  input.patch = kPatch;
  input.agent_text = kAgentText;
  const std::string curl = "/usr/bin/curl";
  report::DenialList denied = report::FromEvents(
      [](const std::string& directory) { return report::ReadDenials(directory); },
      Event("corpus.example.org", 443, "", "", "/usr/bin/curl", "no policy allows this host") +
          Event("corpus.example.org", 443, "", "", "/usr/bin/curl", "no policy allows this host") +
          Event("api.github.com", 443, "POST", "/repos/octo-org/parser/issues", "/usr/bin/curl",
                "POST is not allowed by the rules of github") +
          Event("169.254.169.254", 80, "GET", "/latest/meta-data/iam", "/usr/bin/python3.11",
                "internal address"));
  report::DeniedRequest operation;
  operation.denial = {"api.github.com", 443, "POST", "/graphql", curl, "graphql"};
  operation.denial.operations = {{"mutation", "Open", {"createIssue"}, "", "", ""}};
  operation.reason = "GraphQL operation blocked by endpoint policy";
  operation.allow_line = advise::SuggestLine(operation.denial);
  input.record.denials = denied.denials;
  input.record.denials.push_back(operation);
  input.record.findings = {{report::FindingSource::kGate, "large-file", report::Severity::kNote,
                            "a binary file was added", "assets/logo.png", 0, false}};
  input.allowed = {{"api.anthropic.com", 443, "POST", "/v1/messages", "/opt/claude/claude", 14},
                   {"github.com", 443, "GET", "/octo-org/parser/info/refs", "/usr/bin/git", 2}};
  using Kind = report::TranscriptStep::Kind;
  input.transcript = {
      {Kind::kThinking, "", "The length comes from the file, so it may be anything."},
      {Kind::kText, "", "I will look at how the header is read."},
      {Kind::kTool, "Read src/parser.c", "file_path: src/parser.c\n", "41  size_t length = ..."},
      {Kind::kText, "", "The length is not checked. I will check it, and add a test."},
      {Kind::kTool, "Edit src/parser.c", "file_path: src/parser.c\n", "The file was changed."},
      {Kind::kTool, "Bash curl -fO https://corpus.example.org/parser.tar.gz",
       "command: curl -fO https://corpus.example.org/parser.tar.gz\n",
       "curl: (56) CONNECT tunnel failed, response 403", true}};
  input.log =
      "> Read src/parser.c\n> Edit src/parser.c\n> Bash curl -fO https://corpus.example.org\n";
  return input;
}

// The same work, and what no agent may change.
ReportInput Refused() {
  ReportInput input = Full();
  report::RunRecord& run = input.record;
  run.outcome = {report::OutcomeKind::kRefused, "", "a gate refused the changes", 77, 0};
  input.files.insert(
      input.files.begin(),
      {{".github/workflows/ci.yml", "", FileState::kModified, "100644", "100644", false, 1, 1, 310},
       {"config.env", "", FileState::kCreated, "", "100644", false, 2, 0, 46}});
  // In two pieces, or this file would hold what looks like a key.
  const std::string key = std::string("AKIA") + "Z7QK2MTNB4VWXE5L";
  input.patch =
      "diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml\nindex 1a2b3c4..5d6e7f8 "
      "100644\n--- a/.github/workflows/ci.yml\n+++ b/.github/workflows/ci.yml\n@@ -3,3 +3,3 @@ "
      "on:\n "
      "permissions:\n-  contents: read\n+  contents: write\n jobs:\n"
      "diff --git a/config.env b/config.env\nnew file mode 100644\nindex 0000000..f3a1b22\n--- "
      "/dev/null\n+++ b/config.env\n@@ -0,0 +1,2 @@\n+REGION=eu-central-1\n+KEY=" +
      key + "\n" + input.patch;
  run.changes = {6, 21, 4, static_cast<int64_t>(input.patch.size()), false, true};
  run.findings.push_back({report::FindingSource::kAgent, "overflow", report::Severity::kWarning,
                          "length + 1 wraps around for a length of SIZE_MAX", "src/parser.c", 45,
                          false});
  run.findings.push_back({report::FindingSource::kGate, "protected-paths", report::Severity::kError,
                          "protected file: forge configuration", ".github/workflows/ci.yml", 0,
                          true});
  run.findings.push_back({report::FindingSource::kGate, "secrets", report::Severity::kError,
                          "an AWS access key id, AKIA..., 20 characters", "config.env", 2, true});
  return input;
}

// Everything that comes from outside tries to be something else.
ReportInput Odd() {
  const std::string bad =
      "x\xff\x1b[31m\u202e</pre><script>alert(1)</script>\n```\n::add-mask::y\n@octocat #1 |a| "
      "<!-- ";
  ReportInput input = Full();
  report::RunRecord& run = input.record;
  run.outcome = {report::OutcomeKind::kLimit, bad, bad, 125, 143};
  run.event.repository = bad;
  run.event.actor = bad;
  run.policy.path = bad;
  run.trust.reason = bad;
  run.agent = {bad, bad, bad, bad, {bad, ""}};
  run.usage.model = bad;
  run.limits.push_back({bad, 0, 1e300, bad, true});
  run.isolation.controls.push_back({bad, ControlState::kUnavailable, bad});
  run.waivers = {{bad, bad}};
  run.phases_ms.push_back({bad, -5});
  run.findings = {
      {report::FindingSource::kAgent, bad, report::Severity::kError, bad, "../../etc/passwd", -3,
       true},
      {report::FindingSource::kAgent, "", report::Severity::kNote, "", "/abs", 7, false},
      {report::FindingSource::kGate, "secret", report::Severity::kError, bad, "a b:c#?%/d.c", 7,
       true},
      {report::FindingSource::kGate, "secret", report::Severity::kError, bad, "a b:c#?%/d.c", 7,
       true}};
  report::DeniedRequest denied;
  denied.denial.host = bad;
  denied.denial.port = 1;
  denied.denial.method = bad;
  denied.denial.path = bad;
  denied.denial.binary = bad;
  denied.reason = bad;
  denied.count = 1000000000000;
  denied.allow_line = denied.deny_rule = bad;
  report::DeniedRequest operation = denied;
  operation.denial.protocol = bad;
  operation.denial.operations = {{bad, bad, {bad}, bad, "", ""}, {"", "", {}, "", bad, bad}};
  operation.allow_line = "rules: [{allow: {method: 'x'}}]";
  run.denials = {denied, operation};
  input.files = {{bad, bad, FileState::kRenamed, "120000", "100755", false, -1, 1, -1},
                 {std::string(100000, 'p'), "", FileState::kDeleted, "", "", true, 0, 0, 0}};
  run.changes = {2, 0, 0, 0, true, false};
  input.patch = "no diff at all\n@@ -9999999999999999999999 +x @@\n+" + bad + "\n" +
                std::string(200000, '+') + "\ndiff --git " + bad + "\n@@\n-\n\\ no newline";
  input.agent_text = bad + std::string(200000, '`') + "\n</details>\n";
  input.agent_tail = {bad, std::string(100000, '<')};
  input.log = bad + std::string(200000, '<');
  input.log_cut = true;
  input.allowed = {{bad, -1, bad, bad, bad, -5}};
  input.transcript = {{report::TranscriptStep::Kind::kTool, bad, bad, bad, true, true},
                      {report::TranscriptStep::Kind::kText, bad, bad},
                      {report::TranscriptStep::Kind::kThinking, bad, bad}};
  input.transcript_dropped = 1;
  input.allowed_dropped = 1;
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  ReportInput input;
  if (std::strcmp(argv[1], "full") == 0) input = Full();
  if (std::strcmp(argv[1], "refused") == 0) input = Refused();
  if (std::strcmp(argv[1], "odd") == 0) input = Odd();
  Status made = sys::MakeDirectories(argv[2]);
  if (made.ok()) made = report::WriteReport(argv[2], input);
  if (made.ok()) return 0;
  std::fprintf(stderr, "%s\n", made.error().what.c_str());
  return 74;
}
