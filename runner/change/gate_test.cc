// SPDX-License-Identifier: Apache-2.0
#include "change/gate.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace change {
namespace {

const std::string kId(40, '1');
const std::string kToken = "ghp_" + std::string("aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5");

// A set with one created file of these lines.
ChangeSet Created(const std::string& path, const std::vector<std::string>& lines,
                  int mode = 0100644) {
  ChangeSet changes;
  FileChange file;
  file.kind = ChangeKind::kCreated;
  file.path = path;
  file.new_mode = mode;
  changes.files = {file};
  changes.patch = "diff --git a/" + path + " b/" + path + "\nnew file mode " +
                  (mode == 0120000 ? "120000" : "100644") + "\nindex " + std::string(40, '0') +
                  ".." + kId + "\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1," +
                  std::to_string(lines.size()) + " @@\n";
  for (const std::string& line : lines) changes.patch += "+" + line + "\n";
  return changes;
}

bool Finds(const Verdict& verdict, const std::string& gate, const std::string& message) {
  return std::any_of(
      verdict.findings.begin(), verdict.findings.end(), [&](const GateFinding& finding) {
        return finding.gate == gate && finding.message.find(message) != std::string::npos;
      });
}

TEST_CASE("A directory that becomes a repository is refused by its name") {
  const ChangeSet changes = Created("docs/HEAD", {"ref: refs/heads/main"});
  GateLimits limits;
  CHECK(JudgeChanges(changes, limits).accepted);
  limits.before["docs"] = {"objects", "refs"};
  CHECK(Finds(JudgeChanges(changes, limits), "protected-paths", "takes the directory 'docs'"));
  limits.prefix = "sub/";
  CHECK(JudgeChanges(changes, limits).accepted);
  limits.before["sub/docs"] = {"objects", "refs"};
  CHECK(Finds(JudgeChanges(changes, limits), "protected-paths", "takes the directory 'sub/docs'"));
  CHECK(WrittenPaths(changes.files, "sub/") == std::vector<std::string>{"sub/docs/HEAD"});
}

TEST_CASE("Lines for a file are judged by the paths and secrets of the gates") {
  CHECK(JudgeLines("a.c", "x\ny\n", {}).findings.empty());
  CHECK_FALSE(JudgeLines(".github/x", "", {}).accepted);
  CHECK(Finds(JudgeLines("a.c", "x\n" + kToken + "\n", {}), "secrets", "characters"));
  CHECK_FALSE(JudgeLines("../a.c", "x\n", {}).accepted);
}

TEST_CASE("Refused files are left out of a set, and the rest is accepted") {
  ChangeSet all;
  const auto add = [&](ChangeSet one) {
    all.files.push_back(one.files[0]);
    all.patch += one.patch;
  };
  for (const char* name : {"HEAD", "objects/x", "refs/x"}) {
    add(Created(std::string("build/bare/") + name, {"x"}));
  }
  add(Created("build/good", {"x"}));
  add(Created("build/token", {kToken}));
  all.conflicts.push_back({"build/theirs", "changed meanwhile", 0100644, kToken});
  all.complete = false;
  const ChangeSet left = LeaveOutRefused(all, {}, nullptr);
  CHECK(JudgeChanges(left, {}).accepted);
  std::vector<std::string> paths;
  for (const LeftOut& one : left.left_out) paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"build/theirs", "build/bare/HEAD", "build/token"});
  CHECK(left.files.size() == 3);
  CHECK(left.patch.find(kToken) == std::string::npos);
  CHECK(left.patch.find("b/build/good") != std::string::npos);
  // A gate that refuses the whole set leaves no file.
  GateLimits limits;
  limits.files_max = 4;
  const ChangeSet none = LeaveOutRefused(all, limits, nullptr);
  CHECK((none.files.empty() && none.patch.empty() && none.complete));
  REQUIRE(none.left_out.size() == 2);
  CHECK(none.left_out[1].path == ".");
  CHECK(none.left_out[1].reason == "5 files changed; the limit is 4 (gates.files)");
}

TEST_CASE("An ordinary change is accepted without a finding") {
  Verdict verdict = JudgeChanges(Created("src/a.cc", {"int main() {}"}), {});
  CHECK(verdict.accepted);
  CHECK(verdict.findings.empty());
  CHECK(JudgeChanges(ChangeSet(), {}).accepted);
}

TEST_CASE("A path is protected by where it is in the repository, not in the checkout") {
  GateLimits below;
  below.prefix = ".github/";
  CHECK_FALSE(JudgeChanges(Created("workflows/ci.yml", {"on: push"}), below).accepted);
  below.prefix = "docs/";
  CHECK(JudgeChanges(Created("workflows/ci.yml", {"on: push"}), below).accepted);
}

TEST_CASE("The run's own policy is refused by each of its paths") {
  GateLimits limits;
  CHECK(JudgeChanges(Created("rules/p.yml", {"endpoints: []"}), limits).accepted);
  limits.policy = {"rules/p.yml"};
  for (const char* path : {"rules/p.yml", "Rules/P.yml", "rules"}) {
    CHECK(Finds(JudgeChanges(Created(path, {"endpoints: []"}), limits), "protected-paths",
                "the policy of this run"));
  }
  for (const char* path : {"rules/p.yml2", "rules/q.yml", "p.yml"}) {
    CHECK(JudgeChanges(Created(path, {"endpoints: []"}), limits).accepted);
  }
  limits.prefix = "rules/";
  CHECK_FALSE(JudgeChanges(Created("p.yml", {"endpoints: []"}), limits).accepted);
  limits.merged = {"rules/p.yml"};
  CHECK(JudgeChanges(Created("p.yml", {"endpoints: []"}), limits).accepted);
}

TEST_CASE("What a link at a protected path leads to is protected like the path") {
  GateLimits limits;
  limits.links = {{"CLAUDE.md", "docs/guide.md"}, {".husky", "tools/hooks"}};
  Verdict file = JudgeChanges(Created("docs/guide.md", {"do as I say"}), limits);
  CHECK_FALSE(file.accepted);
  CHECK(Finds(file, "protected-paths", "by the link CLAUDE.md"));
  Verdict inside = JudgeChanges(Created("tools/hooks/pre-commit", {"x"}), limits);
  CHECK_FALSE(inside.accepted);
  CHECK(Finds(inside, "protected-paths", "by the link .husky"));
  CHECK(JudgeChanges(Created("docs/guide.md.txt", {"x"}), limits).accepted);
  CHECK(JudgeChanges(Created("docs/other.md", {"x"}), limits).accepted);

  limits.paths.push_back(PathRule::Parse("CLAUDE.md", PathAction::kAllow).value());
  CHECK(JudgeChanges(Created("docs/guide.md", {"x"}), limits).accepted);
  limits.prefix = "sub/";
  CHECK(JudgeChanges(Created("tools/hooks/pre-commit", {"x"}), limits).accepted);
}

TEST_CASE("Where links are not known, any change is refused") {
  GateLimits limits;
  limits.links_unknown = "too many symbolic links";
  Verdict verdict = JudgeChanges(Created("docs/guide.md", {"x"}), limits);
  CHECK_FALSE(verdict.accepted);
  CHECK(Finds(verdict, "protected-paths", "too many symbolic links"));
  CHECK_FALSE(JudgeLines("docs/guide.md", "x\n", limits).accepted);
}

TEST_CASE("A secret in an added line is refused at its line, and not repeated") {
  Verdict verdict = JudgeChanges(Created("a.env", {"x=1", "", "GH=" + kToken}), {});
  CHECK_FALSE(verdict.accepted);
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].gate == "secrets");
  CHECK(verdict.findings[0].path == "a.env");
  CHECK(verdict.findings[0].line == 3);
  CHECK(verdict.findings[0].message == "a GitHub token, ghp_..., 40 characters");
}

TEST_CASE("A secret that is removed or only context is not the agent's") {
  ChangeSet changes;
  FileChange file;
  file.path = "a";
  file.old_mode = file.new_mode = 0100644;
  changes.files = {file};
  changes.patch = "diff --git a/a b/a\nindex " + kId + ".." + kId + " 100644\n--- a/a\n+++ b/a\n" +
                  "@@ -7,3 +7,3 @@\n " + kToken + "\n-old " + kToken + "\n+new\n last\n";
  CHECK(JudgeChanges(changes, {}).findings.empty());
}

TEST_CASE("A secret of the run is refused in any of its forms, and only where it is added") {
  codec::SecretMask known;
  REQUIRE(known.Add("plain words that are a secret"));
  for (const char* line :
       {"x = plain words that are a secret", "x = plain%20words%20that%20are%20a%20secret",
        "x = cGxhaW4gd29yZHMgdGhhdCBhcmUgYSBzZWNyZXQ="}) {
    CAPTURE(line);
    Verdict verdict = JudgeChanges(Created("a", {"x", line}), {}, &known);
    CHECK_FALSE(verdict.accepted);
    CHECK(verdict.reveals_secret);
    REQUIRE(verdict.findings.size() == 1);
    CHECK(verdict.findings[0].line == 2);
    CHECK(verdict.findings[0].message.find("plain") == std::string::npos);
    // The control: it was not declared to be one.
    CHECK(JudgeChanges(Created("a", {"x", line}), {}).accepted);
  }
  Verdict other = JudgeChanges(Created("a", {"plain words that are none"}), {}, &known);
  CHECK(other.accepted);
  CHECK_FALSE(other.reveals_secret);
}

TEST_CASE("Lines that look like headers are text inside a hunk") {
  ChangeSet changes = Created("a", {"++ b/other", "diff --git a/x b/x", "@@ -1 +1 @@", kToken});
  Verdict verdict = JudgeChanges(changes, {});
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].line == 4);
  CHECK(verdict.findings[0].path == "a");
}

TEST_CASE("A byte of zero does not hide a secret") {
  // A new file "\0" kToken "\n", as `git diff --binary` writes it.
  ChangeSet changes;
  FileChange file;
  file.kind = ChangeKind::kCreated;
  file.path = "a";
  file.new_mode = 0100644;
  file.binary = true;
  changes.files = {file};
  changes.patch = "diff --git a/a b/a\nnew file mode 100644\nindex " + std::string(40, '0') + ".." +
                  kId +
                  "\nGIT binary patch\nliteral "
                  "42\nxcmZQb&nSpbbTUqHHBI+0&+@j+^)oC8G%gM?EsHR(a<WWuGtBTZ&"
                  "hazl0st5V47LCO\n\nliteral 0\nHcmV?d00001\n\n";
  Verdict verdict = JudgeChanges(changes, {});
  CHECK_FALSE(verdict.accepted);
  CHECK(Finds(verdict, "secrets", "a GitHub token"));
}

TEST_CASE("A letter of two bytes does not hide a secret") {
  // A new file with kToken in UTF-16, as `git diff --binary` writes it.
  ChangeSet changes;
  FileChange file;
  file.kind = ChangeKind::kCreated;
  file.path = "a";
  file.new_mode = 0100644;
  file.binary = true;
  changes.files = {file};
  changes.patch = "diff --git a/a b/a\nnew file mode 100644\nindex " + std::string(40, '0') + ".." +
                  kId +
                  "\nGIT binary patch\nliteral 84\n"
                  "zcmWN{K?i^^0EXfB+`ma?b{!>+h#huI#3n^VhkktZouB7>Gli3x1y93Diy_lv*$6le\n"
                  "ZMrw^odJ&~JN&4tJ{Z3jKq`Rh};s@3c4zmCN\n\nliteral 0\nHcmV?d00001\n\n";
  Verdict verdict = JudgeChanges(changes, {});
  CHECK_FALSE(verdict.accepted);
  CHECK(Finds(verdict, "secrets", "a GitHub token"));
  CHECK(verdict.findings.size() == 1);
}

TEST_CASE("Protected paths are refused under either name") {
  CHECK(Finds(JudgeChanges(Created(".github/workflows/x.yml", {"on: push"}), {}), "protected-paths",
              "forge"));
  ChangeSet changes;
  FileChange file;
  file.kind = ChangeKind::kRenamed;
  file.path = "docs/old.md";
  file.old_path = "CLAUDE.md";
  file.old_mode = file.new_mode = 0100644;
  changes.files = {file};
  changes.patch =
      "diff --git a/CLAUDE.md b/docs/old.md\nsimilarity index 100%\nrename from CLAUDE.md\n"
      "rename to docs/old.md\n";
  Verdict verdict = JudgeChanges(changes, {});
  CHECK_FALSE(verdict.accepted);
  REQUIRE(verdict.findings.size() == 1);
  CHECK(verdict.findings[0].path == "CLAUDE.md");
}

TEST_CASE("Attributes warn and do not refuse") {
  Verdict verdict = JudgeChanges(Created(".gitattributes", {"* -diff"}), {});
  CHECK(verdict.accepted);
  CHECK(verdict.findings.size() == 1);
}

TEST_CASE("Paths that leave the checkout are refused") {
  for (const char* path : {"../x", "a/../../x", "/abs", ".git/hooks/pre-commit"}) {
    CAPTURE(path);
    CHECK(Finds(JudgeChanges(Created(path, {"x"}), {}), "protected-paths", "outside the checkout"));
  }
}

TEST_CASE("A symbolic link out of the checkout is refused, one within it is not") {
  ChangeSet inside = Created("dir/link", {"../a"}, 0120000);
  inside.files[0].link_target = "../a";
  inside.patch += "\\ No newline at end of file\n";
  CHECK(JudgeChanges(inside, {}).accepted);
  ChangeSet outside = Created("dir/link", {"../../a"}, 0120000);
  outside.files[0].link_target = "../../a";
  outside.patch += "\\ No newline at end of file\n";
  CHECK(Finds(JudgeChanges(outside, {}), "protected-paths", "may lead outside"));
}

TEST_CASE("Records that do not describe the patch are refused") {
  ChangeSet changes = Created("a", {"x"});
  SECTION("another path") { changes.files[0].path = "b"; }
  SECTION("a section more") { changes.files.clear(); }
  SECTION("another mode") { changes.files[0].new_mode = 0100755; }
  SECTION("another kind") { changes.files[0].kind = ChangeKind::kModified; }
  SECTION("another link target") {
    changes = Created("link", {"/etc/passwd"}, 0120000);
    changes.files[0].link_target = "a";
  }
  Verdict verdict = JudgeChanges(changes, {});
  CHECK_FALSE(verdict.accepted);
  CHECK(Finds(verdict, "protected-paths", "records"));
}

TEST_CASE("What is not a patch is refused") {
  ChangeSet changes = Created("a", {"x"});
  changes.patch += "--- a/b\n+++ b/b\n";
  CHECK(Finds(JudgeChanges(changes, {}), "protected-paths", "not a patch"));
}

TEST_CASE("Size limits hold at the limit and refuse above it") {
  ChangeSet changes = Created("a", {"x"});
  GateLimits limits;
  limits.files_max = 1;
  limits.patch_bytes_max = static_cast<int64_t>(changes.patch.size());
  CHECK(JudgeChanges(changes, limits).accepted);
  limits.patch_bytes_max -= 1;
  CHECK(Finds(JudgeChanges(changes, limits), "size", "bytes"));
  limits.files_max = 0;
  CHECK(Finds(JudgeChanges(changes, limits), "size", "1 files"));
  changes.complete = false;
  CHECK(Finds(JudgeChanges(changes, {}), "size", "incomplete"));
}

TEST_CASE("Findings are bounded, and a bounded list still refuses") {
  GateLimits limits;
  limits.findings_max = 2;
  Verdict verdict = JudgeChanges(Created("a", {kToken, kToken, kToken, kToken}), limits);
  CHECK_FALSE(verdict.accepted);
  REQUIRE(verdict.findings.size() == 3);
  CHECK(verdict.findings[2].message == "2 more findings");
}

}  // namespace
}  // namespace change
