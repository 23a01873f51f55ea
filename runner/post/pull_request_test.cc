// SPDX-License-Identifier: Apache-2.0
// Tests which requests a report leads to, and in which order, with a forge that records them.
#include "post/pull_request.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace post {
namespace {

const std::string kHead(40, 'b');
const std::string kBase(40, 'c');  // The end of "main".

// Records the calls that change something, in order. `fails` has those that fail, with the error.
class FakeForge final : public forge::Forge,
                        public forge::Comments,
                        public forge::Reviews,
                        public forge::Branches {
 public:
  std::vector<std::string> calls;
  std::vector<std::string> read_at;  // The commits at which files were read.
  std::map<std::string, Error> fails;
  forge::Place where{forge::ForgeKind::kGitHub, "acme/site", 0, 7};
  forge::Capabilities can;
  std::vector<forge::Comment> there;
  std::vector<forge::ReviewThread> threads;
  std::vector<std::string> changed = {"a.c"};  // The files in the pull request's difference.
  std::string hunks = "@@ -1 +1,3 @@\n one\n+two\n+three\n";  // Each one's.
  forge::Tree tree;                                           // The tree of its head.
  Deadline tree_deadline = Deadline::Never();  // The last one that it was to be listed by.
  bool slow = false;                           // It is not listed in time.

  std::map<std::string, std::string> blobs = {{"guide", "guide.md"}};

  FakeForge() {
    can.check_runs = can.code_scanning = can.comments_on_files = true;
    can.line_ranges = can.suggestions = true;
  }

  void Leave(std::vector<forge::EmptyReview> reviews) { empty_reviews_ = std::move(reviews); }

  const forge::Place& place() const override { return where; }
  const forge::Capabilities& capabilities() const override { return can; }
  forge::Comments& comments() override { return *this; }
  forge::Reviews& reviews() override { return *this; }
  forge::Branches& branches() override { return *this; }
  bool may_have_arrived() const override { return false; }
  bool dry_run() const override { return false; }

  Result<forge::Viewer> AskViewer(Deadline) override { return forge::Viewer{1, "bot"}; }
  Result<std::optional<std::string>> ReadFile(const std::string&, const std::string& commit,
                                              Deadline) override {
    read_at.push_back(commit);
    return std::optional<std::string>();
  }
  Status KeepStatus(const forge::CommitStatus& status, Deadline) override {
    return Call("status", " " + std::string(status.success ? "success" : "failure"));
  }
  Status AddLabels(int64_t, const std::vector<std::string>&, Deadline) override {
    return Call("label");
  }
  Status PostCheckRun(const forge::CheckRun& run, Deadline) override {
    return Call("check", " " + run.conclusion + " " + std::to_string(run.annotations.size()));
  }
  Status UploadSarif(const forge::SarifUpload& upload, Deadline) override {
    return Call("sarif", " " + upload.ref);
  }
  Status StoreStatement(const forge::StatementUpload& upload, Deadline) override {
    return Call("statement", " " + upload.bundle);
  }

  Result<std::vector<forge::Comment>> List(Deadline) override { return there; }
  Result<forge::Comment> Create(const std::string& text, Deadline) override {
    TRY(Call("comment"));
    there.push_back({static_cast<int64_t>(there.size()) + 1, 1, "bot", "https://f/1", text});
    return there.back();
  }
  Result<forge::Comment> Update(int64_t id, const std::string& text, Deadline) override {
    TRY(Call("comment again"));
    auto& comment = there.at(static_cast<size_t>(id) - 1);
    comment.text = text;
    return comment;
  }
  Status Delete(int64_t, Deadline) override { return Call("delete"); }

  Result<forge::Proposal> ReadProposal(Deadline) override {
    if (fails.contains("proposal")) return fails.at("proposal");
    return forge::Proposal{kHead, std::string(40, 'a'), "fix", "main"};
  }
  Result<std::vector<forge::DiffFile>> ReadFiles(Deadline) override {
    if (fails.contains("files")) return fails.at("files");
    std::vector<forge::DiffFile> files;
    for (const std::string& path : changed) {
      forge::DiffFile file;
      file.path = file.old_path = path;
      file.lines = forge::ParseHunks(hunks);
      files.push_back(std::move(file));
    }
    return files;
  }
  Result<std::vector<forge::ReviewThread>> ReadThreads(Deadline) override { return threads; }
  Status Post(const std::string&, const std::string& text,
              const std::vector<forge::ReviewComment>& comments, Deadline) override {
    TRY(Call("review", " " + std::to_string(comments.size()) +
                           (text.find("you can apply") != std::string::npos ? " applicable" : "")));
    for (const forge::ReviewComment& comment : comments) {
      forge::ReviewThread thread;
      thread.first_id = static_cast<int64_t>(threads.size()) + 1;
      thread.id = std::to_string(thread.first_id);
      thread.first_text = comment.text;
      thread.ours = true;
      thread.line = comment.end_line;
      thread.comments = 1;
      threads.push_back(thread);
    }
    return Ok();
  }
  Status PostOnFile(const std::string&, const std::string& path, const std::string&,
                    Deadline) override {
    return Call("file", " " + path);
  }
  Status Resolve(const std::string& id, Deadline) override { return Call("resolve", " " + id); }
  Status Reopen(const std::string& id, Deadline) override { return Call("reopen", " " + id); }
  Status Hide(const forge::ReviewThread& thread, Deadline) override {
    return Call("hide", " " + thread.id);
  }
  Status DeleteComment(int64_t id, Deadline) override {
    return Call("remove", " " + std::to_string(id));
  }
  Status Retire(int64_t id, Deadline) override { return Call("retire", " " + std::to_string(id)); }

  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline) override {
    return std::optional(branch == "main" ? kBase : kHead);
  }
  Result<std::vector<forge::CommitRecord>> ReadHistory(const std::string&, int, Deadline) override {
    if (fails.contains("history")) return fails.at("history");
    return std::vector{forge::CommitRecord{kHead, "tree", "message", {}}};
  }
  Result<forge::Tree> ReadTree(const std::string&, Deadline deadline) override {
    tree_deadline = deadline;
    while (slow && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (slow) return Error{Code::kTemporary, "no time is left"};
    if (fails.contains("tree")) return fails.at("tree");
    return tree;
  }
  Result<std::string> ReadBlob(const std::string& id, Deadline) override {
    return blobs.contains(id) ? blobs.at(id) : std::string();
  }
  Result<std::string> Commit(const forge::CommitRequest&, Deadline) override {
    TRY(Call("commit"));
    return std::string();
  }
  bool moved() const override { return false; }
  std::string CannotCommit(const forge::CommitRequest&) const override { return {}; }
  Result<std::optional<forge::BranchPullRequest>> FindPullRequest(const std::string&,
                                                                  const std::string&,
                                                                  Deadline) override {
    return std::optional<forge::BranchPullRequest>();
  }
  Result<forge::BranchPullRequest> Open(const forge::PullRequestText&, Deadline) override {
    TRY(Call("open"));
    return forge::BranchPullRequest();
  }
  Status Retell(int64_t, const forge::PullRequestText&, Deadline) override {
    return Call("retell");
  }

 private:
  Status Call(const std::string& name, const std::string& more = "") {
    calls.push_back(name + more);
    auto refused = fails.find(name);
    if (refused != fails.end()) return refused->second;
    return Ok();
  }
};

report::Finding AgentFinding(const std::string& path, int line) {
  report::Finding finding;
  finding.source = report::FindingSource::kAgent;
  finding.rule = "r";
  finding.message = "at " + path;
  finding.path = path;
  finding.line = finding.end_line = line;
  return finding;
}

report::PostedReport Report(std::vector<report::Finding> findings) {
  report::PostedReport report;
  report.record.findings = std::move(findings);
  report.record.event.head_sha = kHead;
  report.record.started_at_ms = 1000;
  report.record.outcome.kind = report::OutcomeKind::kSuccess;
  report.summary_markdown = "summary\n";
  return report;
}

Parts All() {
  Parts parts;
  parts.check = parts.status = parts.sarif = true;
  parts.statement = forge::StatementUpload{"{}", "type", "digest"};
  parts.labels = {"l"};
  return parts;
}

Outcome PostTo(FakeForge& forge, const report::PostedReport& report, Parts parts = All(),
               Deadline deadline = Deadline::Never()) {
  if (!parts.patch.read_gates) {
    parts.patch.read_gates = [](const std::string&) { return change::GateLimits(); };
  }
  Target target;
  target.place = forge.where;
  target.marker_key = "ci/agent";
  return PostToPullRequest(forge, target, parts, report, deadline);
}

const std::vector<std::string> kEverything = {"comment",        "review 1",
                                              "file a.c",       "check neutral 2",
                                              "status success", "sarif refs/pull/7/head",
                                              "statement {}",   "label"};

}  // namespace

TEST_CASE("The comment is posted before the review, and that before check, status and alerts") {
  FakeForge forge;
  const auto report = Report({AgentFinding("a.c", 2), AgentFinding("a.c", 30)});
  const Outcome outcome = PostTo(forge, report);
  CHECK(outcome.ended.ok());
  CHECK(forge.calls == kEverything);
  CHECK(outcome.delivered.on_lines == 1);
  CHECK(outcome.delivered.on_files == 1);
}

constexpr char kOffered[] = "```suggestion\nx\n```\n";

// The one comment of a review of this suggestion in this file.
std::string CommentOn(FakeForge& forge, const std::string& path, const std::string& suggestion,
                      const Parts& parts = All()) {
  forge.changed = {path};
  report::Finding finding = AgentFinding(path, 2);
  finding.suggestion = suggestion;
  const Outcome outcome = PostTo(forge, Report({finding}), parts);
  REQUIRE(forge.threads.size() == 1);
  return forge.threads.front().first_text;
}

TEST_CASE("A suggestion is offered where the gates let its lines into its file") {
  FakeForge free;
  free.tree["a.c"] = {0100644, "id"};
  CHECK(CommentOn(free, "a.c", "x\n").ends_with(kOffered));
  const std::string token = "ghp_" + std::string("aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5");
  for (const auto& [path, lines, why] : std::vector<std::array<std::string, 3>>{
           {".github/workflows/ci.yml", "run: x\n", "protected file"},
           {".v\u017fcode/tasks.json", "x\n", "protected file"},
           {"a.c", "x\nkey = " + token + "\n", "the gate secrets refuses it"},
           {"a.link", "../../x\n", "a symbolic link"},
           {"guide.md", "x\n", "by the link CLAUDE.md"},
           {"config", "x\n", "for a repository"}}) {
    CAPTURE(path);
    FakeForge forge;
    forge.tree["a.link"] = {0120000, "id"};
    forge.tree["CLAUDE.md"] = {0120000, "guide"};
    if (path == "config") {
      for (const char* name : {"HEAD", "objects", "refs"}) forge.tree[name] = {0100644, "id"};
    }
    const std::string text = CommentOn(forge, path, lines);
    INFO(text);
    CHECK(text.find("suggestion\n") == std::string::npos);
    CHECK(text.find("There is a change for it that is not offered: ") != std::string::npos);
    CHECK(text.find(why) != std::string::npos);
    CHECK(text.find(token) == std::string::npos);
    CHECK(forge.calls[1] == "review 1");
  }
}

std::string SuggestionUnder(const std::map<std::string, std::string>& links,
                            const std::string& path) {
  FakeForge forge;
  for (const auto& [link, target] : links) {
    forge.tree[link] = {0120000, target};
    forge.blobs[target] = target;
  }
  return CommentOn(forge, path, "x\n");
}

TEST_CASE("What a link at a protected path leads to takes no suggestion, however it leads there") {
  const std::map<std::string, std::string> chain = {
      {"pkg/CLAUDE.md", "./../doc//rules.md"}, {"doc", "a/b"}, {"a/b/rules.md", "../r.md"}};
  for (const char* path : {"doc", "a/b/rules.md", "a/r.md"}) {
    CHECK(SuggestionUnder(chain, path).find("suggestion\n") == std::string::npos);
  }
  CHECK(SuggestionUnder(chain, "a/r.md").find("by the link pkg/CLAUDE.md") != std::string::npos);
  CHECK(SuggestionUnder({{".github", "hub"}}, "hub/workflows/ci.yml").find("by the link") !=
        std::string::npos);
  CHECK(SuggestionUnder(chain, "a/b/c.md").ends_with(kOffered));
  // A link in the directory that one leads to.
  const std::map<std::string, std::string> inner = {{".claude", "tools"},
                                                    {"tools/commands", "../lib"}};
  CHECK(SuggestionUnder(inner, "lib/x.md").find("by the link .claude/commands") !=
        std::string::npos);
  CHECK(SuggestionUnder(inner, "library/x.md").ends_with(kOffered));
  for (const char* target : {"../a.c", "/a.c", "CLAUDE.md"}) {
    CHECK(SuggestionUnder({{"CLAUDE.md", target}}, "a.c").ends_with(kOffered));
  }
}

TEST_CASE("Nothing is offered where the links at protected paths cannot all be known") {
  auto links = [](size_t count, bool same) {
    std::map<std::string, std::string> made;
    for (size_t at = 0; at < count; ++at) {
      made[std::to_string(at) + "/CLAUDE.md"] = same ? "AGENTS.md" : std::to_string(at) + ".md";
    }
    return made;
  };
  const std::string many = "the commit has too many symbolic links at protected paths";
  CHECK(SuggestionUnder(links(100, false), "a.c").ends_with(kOffered));
  CHECK(SuggestionUnder(links(101, false), "a.c").find(many) != std::string::npos);
  CHECK(SuggestionUnder(links(1000, true), "a.c").ends_with(kOffered));
  CHECK(SuggestionUnder(links(1001, true), "a.c").find(many) != std::string::npos);
  CHECK(SuggestionUnder({{"CLAUDE.md", std::string("a\0b", 3)}}, "a.c").find("no possible path") !=
        std::string::npos);
  FakeForge cut;
  cut.fails.emplace("tree", Error{Code::kInvalid, "too many files", ""});
  CHECK(CommentOn(cut, "a.c", "x\n").find("it cannot be judged here: too many files") !=
        std::string::npos);
}

TEST_CASE("A suggestion follows the rules of the base, and is not offered where they are unknown") {
  Parts parts = All();
  parts.patch.read_gates = [](const std::string& commit) -> Result<change::GateLimits> {
    CHECK(commit == kBase);
    change::GateLimits limits;
    limits.paths = {change::PathRule::Parse("a.c", change::PathAction::kRefuse).value()};
    return limits;
  };
  FakeForge forge;
  CHECK(CommentOn(forge, "a.c", "x\n", parts).find("in the configuration") != std::string::npos);
  FakeForge silent;
  silent.fails.emplace("history", Error{Code::kRefused, "403", ""});
  CHECK(CommentOn(silent, "a.c", "x\n").find("it cannot be judged here: 403") != std::string::npos);
  FakeForge away;
  away.fails.emplace("history", Error{Code::kTemporary, "502", ""});
  report::Finding finding = AgentFinding("a.c", 2);
  finding.suggestion = "x\n";
  CHECK(PostTo(away, Report({finding})).ended.error().code == Code::kTemporary);
  CHECK(away.threads.empty());
}

TEST_CASE("Suggestions that cannot be judged in time leave time to post without them") {
  FakeForge forge;
  forge.slow = true;
  report::Finding one = AgentFinding("a.c", 2);
  one.suggestion = "x\n";
  report::Finding other = AgentFinding("a.c", 3);
  other.suggestion = "y\n";
  const Deadline deadline = Deadline::After(std::chrono::minutes(1));
  FakeForge quick;
  CHECK(PostTo(quick, Report({one, other}), All(), deadline).ended.ok());  // The control.
  CHECK(quick.threads.at(0).first_text.find("```suggestion") != std::string::npos);
  const Deadline soon = Deadline::After(std::chrono::seconds(1));
  CHECK(PostTo(forge, Report({one, other}), All(), soon).ended.ok());
  CHECK(forge.tree_deadline < soon);
  REQUIRE(forge.threads.size() == 2);
  for (const forge::ReviewThread& thread : forge.threads) {
    CHECK(thread.first_text.ends_with("that is not offered: it cannot be judged in time.\n"));
  }
}

TEST_CASE("The rules are compared at commits, not at a branch's name, which a tag may have") {
  FakeForge forge;
  forge.changed = {".agentic-ci/openshell-policy.yml"};
  PostTo(forge, Report({}));
  CHECK(forge.read_at == std::vector<std::string>{kBase, kHead});
}

TEST_CASE("A note about the rules does not drown the verdict, however many files it is about") {
  FakeForge forge;
  forge.hunks = "@@ -0,0 +1,3000 @@\n";
  for (int line = 0; line < 3000; ++line) forge.hunks += "+/word\n";
  PostTo(forge, Report({}));
  CHECK(forge.there.at(0).text.find("own rules") == std::string::npos);
  forge.changed.clear();
  for (int file = 0; file < 100; ++file) {
    forge.changed.push_back(".agentic-ci/a" + std::to_string(file) + std::string(150, 'x'));
  }
  forge.changed.insert(forge.changed.end(), {".agentic-ci/config.yml", "z.c"});
  PostTo(forge, Report({}));
  const std::string& text = forge.there.at(0).text;
  INFO(text);
  CHECK(text.size() < 16'000);
  CHECK(text.find("own rules: `.agentic-ci/config.yml`, `.agentic-ci/a0x") != std::string::npos);
  CHECK(text.find(" and 81 more.") != std::string::npos);
  CHECK(text.find("Lines added to `.agentic-ci/config.yml`") != std::string::npos);
  CHECK(text.find("lines of 100 more of these files are not shown") != std::string::npos);
  CHECK(text.find("\nsummary\n") != std::string::npos);
  // The forge has cut its lines.
  forge.changed = {".agentic-ci/config.yml"};
  forge.hunks.clear();
  PostTo(forge, Report({}));
  CHECK(forge.there.at(0).text.find("lines of 1 more of these") != std::string::npos);
}

TEST_CASE("A patch that could not be judged is not committed, whatever the reason") {
  report::PostedReport report = Report({});
  report.patch =
      "diff --git a/n b/n\nnew file mode 100644\nindex " + std::string(40, '0') +
      "..587be6b4c3f93f93c489c0111bba5596147a26cb\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
  Parts parts;
  parts.comment = parts.review = false;
  parts.patch.way = PatchWay::kCommits;
  FakeForge forge;
  CHECK(PostTo(forge, report, parts).ended.ok());
  CHECK(forge.calls == std::vector<std::string>{"commit"});
  for (Code code : {Code::kTemporary, Code::kSetup, Code::kRefused}) {
    parts.patch.read_gates = [code](const std::string&) { return Error{code, "why", ""}; };
    FakeForge silent;
    CHECK(PostTo(silent, report, parts).ended.error().what.ends_with("why"));
    CHECK(silent.calls.empty());
  }
}

TEST_CASE("A part that is refused keeps no other part back, and is no success") {
  const auto report = Report({AgentFinding("a.c", 2), AgentFinding("a.c", 30)});
  for (const char* part : {"comment", "review", "check", "status", "sarif", "statement", "label"}) {
    FakeForge forge;
    forge.fails.emplace(part, Error{Code::kRefused, "not permitted", "permissions: {}"});
    const Outcome outcome = PostTo(forge, report);
    CAPTURE(part);
    CHECK(outcome.ended.error().code == Code::kRefused);
    CHECK(outcome.refused.size() == 1);
    CHECK(outcome.failed == std::vector<std::string>{part});
    std::vector<std::string> others = {"comment", "review",    "check", "status",
                                       "sarif",   "statement", "label"};
    std::erase(others, part);
    CHECK(outcome.made == others);
    auto expected = kEverything;
    if (std::string(part) == "review") std::erase(expected, "file a.c");
    CHECK(forge.calls == expected);
  }
  // A failure that another attempt may mend is reported before one that it cannot.
  FakeForge forge;
  forge.fails.emplace("review", Error{Code::kRefused, "not permitted"});
  forge.fails.emplace("check", Error{Code::kTemporary, "busy"});
  CHECK(PostTo(forge, report).ended.error().code == Code::kTemporary);
}

TEST_CASE("A difference that cannot be read keeps the check back from nothing but its lines") {
  FakeForge forge;
  forge.fails.emplace("files", Error{Code::kTemporary, "busy"});
  report::Finding finding = AgentFinding("a.c", 2);
  finding.lines_sha256 = "digest";
  const Outcome outcome = PostTo(forge, Report({finding}));
  CHECK(outcome.made ==
        std::vector<std::string>{"comment", "check", "status", "sarif", "statement", "label"});
  CHECK(outcome.failed == std::vector<std::string>{"review"});
}

TEST_CASE("Labels of a pull request that could not be made go to no other") {
  FakeForge forge;
  forge.fails.emplace("history", Error{Code::kTemporary, "busy"});
  report::PostedReport report = Report({});
  report.patch = "diff --git a/a.c b/a.c\n";
  Parts parts = All();
  parts.patch.way = PatchWay::kPullRequest;
  const Outcome outcome = PostTo(forge, report, parts);
  CHECK(std::find(forge.calls.begin(), forge.calls.end(), "label") == forge.calls.end());
  CHECK(outcome.failed == std::vector<std::string>{"changes", "label"});
}

TEST_CASE("A check of a run that nothing was to be done for is neutral, and a status passes") {
  FakeForge forge;
  report::PostedReport report = Report({});
  report.record.outcome.kind = report::OutcomeKind::kSkipped;
  Parts parts;
  parts.comment = parts.review = false;
  parts.check = parts.status = true;
  CHECK(PostTo(forge, report, parts).ended.ok());
  CHECK(forge.calls == std::vector<std::string>{"check neutral 0", "status success"});
  // The agent's findings fail it, and its work is whole.
  report.record.outcome.kind = report::OutcomeKind::kFindings;
  forge.calls.clear();
  CHECK(PostTo(forge, report, parts).ended.ok());
  CHECK(forge.calls == std::vector<std::string>{"check failure 0", "status failure"});
}

TEST_CASE("Alerts are about the branch or the tag of the event, where there is no pull request") {
  FakeForge forge;
  forge.where.number = 0;
  Parts parts;
  parts.comment = parts.review = false;
  parts.sarif = true;
  Target target;
  target.place = forge.where;
  target.head_sha = kHead;
  for (const std::string ref : {"refs/tags/v1", "refs/heads/main"}) {
    target.head_ref = ref;
    CHECK(PostToPullRequest(forge, target, parts, Report({}), Deadline::Never()).ended.ok());
    CHECK(forge.calls.back() == "sarif " + ref);
  }
  target.head_ref.clear();
  forge.calls.clear();
  CHECK(PostToPullRequest(forge, target, parts, Report({}), Deadline::Never()).ended.error().code ==
        Code::kRefused);
  CHECK(forge.calls.empty());
}

TEST_CASE("Where the pull request cannot be read, nothing is said of a commit") {
  FakeForge forge;
  forge.fails.emplace("proposal", Error{Code::kTemporary, "busy"});
  const Outcome outcome = PostTo(forge, Report({AgentFinding("a.c", 2)}));
  CHECK(outcome.ended.error().code == Code::kTemporary);
  CHECK(forge.calls == std::vector<std::string>{"comment", "statement {}", "label"});
  CHECK(outcome.undelivered.size() == 1);
}

TEST_CASE("What a forge cannot do is planned for") {
  FakeForge forge;
  forge.can.comments_on_files = forge.can.suggestions = false;
  report::Finding finding = AgentFinding("a.c", 2);
  finding.suggestion = "2\n";
  Parts parts;
  Outcome outcome = PostTo(forge, Report({finding, AgentFinding("a.c", 30)}), parts);
  CHECK(forge.calls == std::vector<std::string>{"comment", "review 1"});
  CHECK(outcome.delivered.in_summary == 1);
  FakeForge able;
  PostTo(able, Report({finding}), parts);  // The control.
  CHECK(able.calls == std::vector<std::string>{"comment", "review 1 applicable"});
}

TEST_CASE("What has no place without a comment is told, and no success") {
  FakeForge forge;
  Parts parts;
  parts.comment = false;
  const auto report = Report({AgentFinding("a.c", 2), AgentFinding("b.c", 1)});
  Outcome outcome = PostTo(forge, report, parts);
  CHECK(outcome.ended.error().code == Code::kRefused);
  CHECK(outcome.delivered.nowhere == 1);
  CHECK(outcome.delivered.in_summary == 0);
  REQUIRE(outcome.undelivered.size() == 1);
  CHECK(outcome.undelivered[0].path == "b.c");
  // A refused comment has no place for them either.
  FakeForge refused;
  refused.fails.emplace("comment", Error{Code::kRefused, "not permitted"});
  CHECK(PostTo(refused, report, Parts()).undelivered.size() == 1);
}

// Thirty lines of a.c are in the difference. `elsewhere` findings are in no file of it, and come
// last in the report.
report::PostedReport LongReport(int elsewhere) {
  std::vector<report::Finding> findings;
  for (int line = 1; line <= 30; ++line) findings.push_back(AgentFinding("a.c", line));
  for (int number = 0; number < elsewhere; ++number) {
    findings.push_back(AgentFinding("far/" + std::to_string(number) + ".c", 1));
  }
  report::PostedReport report = Report(std::move(findings));
  std::string text;
  for (int line = 0; line < 1000; ++line) text += "the agent says this here\n";
  report.agent_text = text;
  report.agent_tail.assign(1000, "the agent's log says this");
  return report;
}

std::string ThirtyLines() {
  std::string hunks = "@@ -0,0 +1,30 @@\n";
  for (int line = 0; line < 30; ++line) hunks += "+x\n";
  return hunks;
}

TEST_CASE("What has no place on a line comes first in the comment, whose table is cut") {
  Parts parts;
  const auto report = LongReport(45);
  FakeForge forge;
  forge.hunks = ThirtyLines();
  Outcome outcome = PostTo(forge, report, parts);
  CHECK(outcome.ended.ok());
  CHECK(outcome.delivered.on_lines == 30);
  CHECK(outcome.delivered.in_summary == 45);
  CHECK(outcome.delivered.nowhere == 0);
  for (int number = 0; number < 45; ++number) {
    const std::string path = "`far/" + std::to_string(number) + ".c:1`";
    CHECK(forge.there.at(0).text.find(path) != std::string::npos);
  }
  CHECK(forge.calls == std::vector<std::string>{"comment", "review 30"});
}

TEST_CASE("What the comment has no room for is told elsewhere") {
  Parts parts;
  FakeForge forge;
  forge.hunks = ThirtyLines();
  Outcome outcome = PostTo(forge, LongReport(53), parts);
  CHECK(outcome.ended.ok());
  CHECK(outcome.refused.size() == 1);
  CHECK(outcome.delivered.in_summary == 50);
  CHECK(outcome.delivered.nowhere == 3);
  REQUIRE(outcome.undelivered.size() == 3);
  CHECK(outcome.undelivered[0].path == "far/50.c");
  // The same of a review that failed: its comment has fifty rows, and the three worst in a list.
  FakeForge failed;
  failed.hunks = ThirtyLines();
  failed.fails.emplace("review", Error{Code::kRefused, "not permitted"});
  outcome = PostTo(failed, LongReport(53), parts);
  CHECK(outcome.undelivered.size() == 83);
  CHECK(outcome.delivered.in_summary == 53);
  CHECK(outcome.delivered.nowhere == 30);
}

TEST_CASE("What the forge takes from its line comes first in the comment after all") {
  Parts parts;
  FakeForge forge;
  forge.hunks = ThirtyLines();
  forge.can.comments_on_files = false;
  forge.fails.emplace("review", Error{Code::kInvalid, "no such line"});
  const Outcome outcome = PostTo(forge, LongReport(20), parts);
  CHECK(outcome.ended.ok());
  CHECK(outcome.delivered.in_summary == 50);
  for (const char* path : {"`a.c:1`", "`a.c:30`", "`far/0.c:1`", "`far/19.c:1`"}) {
    CHECK(forge.there.at(0).text.find(path) != std::string::npos);
  }
}

TEST_CASE("Posting again changes the comment, and no review") {
  FakeForge forge;
  Parts parts;
  const auto report = Report({AgentFinding("a.c", 2)});
  PostTo(forge, report, parts);
  forge.calls.clear();
  CHECK(PostTo(forge, report, parts).ended.ok());
  CHECK(forge.calls == std::vector<std::string>{"comment again"});
  forge.calls.clear();
  PostTo(forge, Report({}), parts);
  CHECK(forge.calls == std::vector<std::string>{"comment again", "resolve 1"});
}

TEST_CASE("A thread that cannot be resolved is told, and keeps nothing back") {
  for (const Code code : {Code::kNotFound, Code::kInvalid, Code::kRefused}) {
    FakeForge forge;
    Parts parts;
    PostTo(forge, Report({AgentFinding("a.c", 1), AgentFinding("a.c", 2)}), parts);
    forge.fails.emplace("resolve", Error{code, "why"});
    forge.fails.emplace("hide", Error{Code::kRefused, "why"});
    forge.Leave({{12, "<!-- agentic-ci:ci/agent -->\n1 comment.\n"}});
    forge.calls.clear();
    const Outcome outcome = PostTo(forge, Report({}), parts);
    CHECK(outcome.ended.ok());
    CHECK(outcome.delivered.resolved == 0);
    CHECK(forge.calls == std::vector<std::string>{"comment again", "resolve 1", "hide 1",
                                                  "resolve 2", "hide 2", "retire 12"});
    const std::string told =
        code == Code::kNotFound ? "this forge cannot resolve threads, or it is gone" : "why";
    CHECK(outcome.refused == std::vector<std::string>{"review: a thread stays open: " + told});
  }
  FakeForge busy;
  PostTo(busy, Report({AgentFinding("a.c", 1)}), Parts());
  busy.fails.emplace("resolve", Error{Code::kTemporary, "busy"});
  CHECK(PostTo(busy, Report({}), Parts()).ended.error().code == Code::kTemporary);
}

TEST_CASE("Of a review that another repeats, what is left is taken back") {
  FakeForge forge;
  Parts parts;
  const auto report = Report({AgentFinding("a.c", 2)});
  PostTo(forge, report, parts);
  forge.threads.push_back(forge.threads[0]);
  forge.threads[1].first_id = 5;
  forge.Leave({{12, "<!-- agentic-ci:ci/agent -->\n1 comment.\n"},
               {13, "<!-- agentic-ci:ci/other -->\n1 comment.\n"},
               {14, "a person's"}});
  forge.calls.clear();
  PostTo(forge, report, parts);
  CHECK(forge.calls == std::vector<std::string>{"comment again", "remove 5", "retire 12"});
  // It stays where the forge does not allow it: the remarks have been posted all the same.
  forge.fails.emplace("retire", Error{Code::kRefused, "not permitted"});
  const Outcome outcome = PostTo(forge, report, parts);
  CHECK(outcome.ended.ok());
  CHECK(outcome.undelivered.empty());
  CHECK(outcome.refused == std::vector<std::string>{"review: an empty one stays: not permitted"});
  // So does a comment that another post repeats.
  forge.Leave({});
  forge.fails.emplace("remove", Error{Code::kRefused, "not permitted"});
  const Outcome doubled = PostTo(forge, report, parts);
  CHECK(doubled.ended.ok());
  CHECK(doubled.refused ==
        std::vector<std::string>{"review: a comment stays doubled: not permitted"});
}

TEST_CASE("What returns is told elsewhere where its thread may not be reopened") {
  FakeForge forge;
  Parts parts;
  const auto report = Report({AgentFinding("a.c", 2)});
  PostTo(forge, report, parts);
  forge.threads[0].resolved = forge.threads[0].resolved_by_us = true;
  Outcome outcome = PostTo(forge, report, parts);  // The control.
  CHECK(forge.calls.back() == "reopen 1");
  CHECK(outcome.delivered.on_lines == 1);
  forge.fails.emplace("reopen", Error{Code::kRefused, "not permitted"});
  outcome = PostTo(forge, report, parts);
  CHECK(outcome.ended.ok());
  CHECK(outcome.delivered.on_lines == 0);
  CHECK(outcome.delivered.in_summary == 1);
  CHECK(outcome.refused ==
        std::vector<std::string>{"review: a thread stays resolved: not permitted"});
  parts.comment = false;
  outcome = PostTo(forge, report, parts);
  CHECK(outcome.ended.error().code == Code::kRefused);
  CHECK(outcome.undelivered.size() == 1);
}

}  // namespace post
