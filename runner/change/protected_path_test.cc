// SPDX-License-Identifier: Apache-2.0
#include "change/protected_path.h"

#include <catch2/catch.hpp>

namespace change {
namespace {

std::vector<PathRule> Rules(const std::vector<std::pair<const char*, PathAction>>& actions) {
  std::vector<PathRule> rules;
  for (const auto& [pattern, action] : actions) {
    Result<PathRule> rule = PathRule::Parse(pattern, action);
    REQUIRE(rule.ok());
    rules.push_back(std::move(rule).value());
  }
  return rules;
}

// "refused", "warning" or "free".
std::string Judged(const std::string& path, const std::vector<PathRule>& rules) {
  auto found = FindProtectedPath(path, rules);
  if (!found) return "free";
  return found->refused ? "refused" : "warning";
}

TEST_CASE("ValidPath refuses what leaves the checkout or enters .git") {
  for (const std::string& path :
       {std::string(""), std::string("../x"), std::string("/abs"), std::string("a/../../x"),
        std::string("a/./b"), std::string("a//b"), std::string("a/"), std::string(".."),
        std::string(".git"), std::string(".git/config"), std::string("a/.GIT/hooks/x"),
        std::string("git~1/x"), std::string(".git./x"), std::string(".git /x"),
        std::string(".git::$INDEX_ALLOCATION/x"), std::string(".g\xe2\x80\x8cit/config"),
        std::string("a\\.git\\config"), std::string("a\0b", 3), std::string(4001, 'a')}) {
    CAPTURE(path);
    CHECK_FALSE(ValidPath(path));
  }
}

TEST_CASE("ValidPath takes ordinary and odd names") {
  for (const char* path : {"a", "a/b", ".gitignore", ".github/x", "a..b", "...", "git", "a b",
                           "new\nline", "\xff", "-rf", ".gitx/a", "agit~1"}) {
    CAPTURE(path);
    CHECK(ValidPath(path));
  }
}

TEST_CASE("A link may lead anywhere beneath the checkout, and nowhere else") {
  CHECK_FALSE(LinkMayLeave("link", "a"));
  CHECK_FALSE(LinkMayLeave("link", "./a/b"));
  CHECK_FALSE(LinkMayLeave("dir/link", "../a"));
  CHECK_FALSE(LinkMayLeave("dir/sub/link", "../../a"));
  CHECK_FALSE(LinkMayLeave("dir/link", ".."));
  CHECK(LinkMayLeave("link", "/etc/passwd"));
  CHECK(LinkMayLeave("link", ".."));
  CHECK(LinkMayLeave("link", "../repo-evil"));
  CHECK(LinkMayLeave("dir/link", "../../x"));
  CHECK(LinkMayLeave("link", ".git/config"));
  CHECK(LinkMayLeave("link", ""));
  CHECK(LinkMayLeave("link", std::string_view("a\0b", 3)));
  // `other` may be a link to a deeper or a higher place: what `..` behind it means is not in the
  // name.
  CHECK(LinkMayLeave("dir/link", "other/../x"));
}

TEST_CASE("A link may leave the checkout only on Windows, too") {
  for (const char* target : {R"(..\..\outside)", R"(\Windows)", R"(\\server\share\x)", R"(a\..\x)",
                             R"(.git\hooks)", R"(a\.GIT\hooks)", R"(a/..\..\..\outside)",
                             R"(./\/../x)", R"(C:\Windows)", "c:/Windows", "C:relative"}) {
    CAPTURE(target);
    CHECK(LinkMayLeave("dir/link", target));
  }
  for (const char* target :
       {R"(..\a)", R"(a\b)", R"(dev-disk-by\x2dlabel.mount)", "a:b:c/d", "ab:c", "a/C:b"}) {
    CAPTURE(target);
    CHECK(LinkMayLeave("dir/link", target) == (target == std::string_view("a:b:c/d")));
  }
}

TEST_CASE("What steers CI, review, hooks or agents is protected, in any case") {
  for (const char* path : {".github/workflows/ci.yml",
                           ".GitHub/x",
                           ".gitlab-ci.yml",
                           ".GITLAB-CI.YML",
                           ".gitlab/x",
                           ".gitea/x",
                           ".forgejo/workflows/x",
                           ".agentic-ci/openshell-policy.yml",
                           "CODEOWNERS",
                           "docs/CODEOWNERS",
                           ".github/CODEOWNERS",
                           ".husky/pre-commit",
                           ".githooks/x",
                           ".pre-commit-config.yaml",
                           ".gitmodules",
                           "CLAUDE.md",
                           "sub/claude.md",
                           "AGENTS.md",
                           "GEMINI.md",
                           ".claude/settings.json",
                           "deep/er/.codex/config.toml",
                           ".cursor/rules/x",
                           ".cursorrules",
                           ".mcp.json",
                           ".github/copilot-instructions.md",
                           ".claude",
                           ".tekton/run.yaml",
                           "appveyor.yml",
                           ".appveyor.yml",
                           "cloudbuild.json",
                           "buildspec.yaml",
                           ".semaphore/semaphore.yml",
                           ".teamcity/settings.kts",
                           ".drone.jsonnet",
                           "azure-pipelines.yaml",
                           "Renovate.json",
                           ".renovaterc.json5",
                           "sub/mise.toml",
                           ".config/mise.toml",
                           ".tool-versions",
                           ".aider.conf.yml",
                           ".roo/rules/x",
                           ".zed/tasks.json",
                           ".github",
                           "Jenkinsfile",
                           ".vscode/tasks.json",
                           "sub/.vscode/settings.json",
                           ".devcontainer/devcontainer.json",
                           ".devcontainer.json",
                           ".idea/workspace.xml",
                           ".npmrc",
                           "web/.NPMRC",
                           ".yarnrc.yml",
                           ".envrc",
                           ".cargo/config.toml",
                           "crates/a/.cargo/config",
                           "action.yml",
                           "sub/action.yaml",
                           ".g\xe2\x80\x8cithub/x",
                           ".github./x"}) {
    CAPTURE(path);
    auto found = FindProtectedPath(path, {});
    REQUIRE(found.has_value());
    CHECK(found->refused);
  }
}

TEST_CASE("A protected path is protected in every spelling that a file system takes for it") {
  for (const char* path : {".v\u017fcode/tasks.json",
                           "AGENT\u017f.md",
                           ".hu\u017fky/pre-commit",
                           ".cur\u017for/rules",
                           "Jen\u212ainsfile",
                           ".\ufb02eet/x",
                           "sub/AGENTS\u034f.md",
                           ".g\u3164ithub/x",
                           "VSCODE~1/tasks.json",
                           "HUSKY~1/pre-commit",
                           "ENVRC~1",
                           "sub/MCP~1.JSO",
                           "GITHUB~1/workflows/x",
                           "AGENTI~1/x",
                           "CLAUD~12.md",
                           "GIA1B2~1.yml",
                           ".github\\workflows\\x.yml",
                           ".GitHub\\\\workflows/x",
                           "a\\..\\.github\\workflows\\x",
                           "sub\\CLAUDE.md",
                           ".agentic-ci\\config.yml",
                           ".\\Jenkinsfile"}) {
    CAPTURE(path);
    auto found = FindProtectedPath(path, {});
    REQUIRE(found.has_value());
    CHECK(found->refused);
  }
  for (const char* path :
       {"v\u0455code/x", "VSCODE~/x", "~1", "a~b", "notes.~1~", "LONGERNAME~1", "a~1.html",
        "stra\u00dfe.md", "dev-disk\\x2duuid.mount", "a\\b/c\\", "x\\.github\\workflows\\x"}) {
    CAPTURE(path);
    CHECK_FALSE(FindProtectedPath(path, {}).has_value());
  }
}

TEST_CASE("A repository's rules hold in every spelling, and never open agentic-ci's own files") {
  auto rules = Rules({{"ma\u017fter/", PathAction::kRefuse},
                      {"\u2764\ufe0f.md", PathAction::kRefuse},
                      {"**", PathAction::kAllow}});
  CHECK(Judged("master/x", rules) == "refused");
  CHECK(Judged("MA\u017fTER/x", rules) == "refused");
  CHECK(Judged("\u2764\ufe0f.md", rules) == "refused");
  CHECK(Judged("PROGRA~1/x", rules) == "free");
  CHECK(Judged("AGENTI~1/config.yml", rules) == "refused");
  CHECK(Judged("ag12ab~1/config.yml", rules) == "refused");
  CHECK(Judged(".agentic-c\u200di/config.yml", rules) == "refused");
}

TEST_CASE("What decides who may merge, or what a service runs, is protected") {
  for (const char* path : {"OWNERS", "pkg/OWNERS", "OWNERS_ALIASES", ".mergify.yml", ".kodiak.toml",
                           ".prow.yaml", "web/netlify.toml", "vercel.json", ".readthedocs.yaml",
                           ".gitpod.yml", ".coderabbit.yaml"}) {
    CAPTURE(path);
    auto found = FindProtectedPath(path, {});
    REQUIRE(found.has_value());
    CHECK(found->refused);
  }
}

TEST_CASE("What a home directory has is protected where homes are kept in git") {
  for (const char* path :
       {".bashrc", ".Zshenv", ".gitconfig", ".ripgreprc", ".aws/config", ".ssh/authorized_keys",
        ".config/git/config", ".local/bin/git", ".gdbinit", "sub/.vimrc", "src/.dir-locals.el"}) {
    CAPTURE(path);
    auto found = FindProtectedPath(path, {});
    REQUIRE(found.has_value());
    CHECK(found->refused);
  }
}

TEST_CASE("Names that only look protected are free") {
  for (const char* path : {"src/main.cc",    "github/x",
                           ".github-x/a",    "sub/.github/x",
                           "CODEOWNERS.md",  "src/CODEOWNERS",
                           "my-agents.md",   "docs/CLAUDE.md.txt",
                           "sub/.bashrc",    "templates/.gitconfig",
                           ".aws/task.json", ".docker/Dockerfile",
                           "bashrc",         ".profile.md",
                           ".gitignore",     "sub/.gitlab-ci.yml",
                           "claude/x",       "a.mcp.json",
                           "vscode/a",       ".cargo/bin/x",
                           "config.toml",    "my-action.yml",
                           "npmrc"}) {
    CAPTURE(path);
    CHECK_FALSE(FindProtectedPath(path, {}).has_value());
  }
}

TEST_CASE("Attributes only hide diffs: a warning, not a refusal") {
  auto found = FindProtectedPath("sub/.gitattributes", {});
  REQUIRE(found.has_value());
  CHECK_FALSE(found->refused);
}

TEST_CASE("A lock file is a warning, since whoever adds a dependency changes it") {
  for (const char* path : {"package-lock.json", "web/yarn.lock", "Cargo.lock", "go.sum"}) {
    CAPTURE(path);
    auto found = FindProtectedPath(path, {});
    REQUIRE(found.has_value());
    CHECK_FALSE(found->refused);
  }
}

TEST_CASE("A repository's rules replace the built-in ones, the strictest of them first") {
  auto rules = Rules({{".vscode/settings.json", PathAction::kAllow},
                      {".vscode", PathAction::kAllow},
                      {".vscode/tasks.json", PathAction::kWarn},
                      {"Cargo.lock", PathAction::kRefuse},
                      {"*.tf", PathAction::kRefuse},
                      {"deploy/", PathAction::kRefuse},
                      {"deploy/docs/**", PathAction::kAllow},
                      {"/top", PathAction::kWarn},
                      {".agentic-ci/**", PathAction::kAllow}});
  for (auto [path, judged] : std::initializer_list<std::pair<const char*, const char*>>{
           {".vscode/settings.json", "free"},
           {".vscode/x", "free"},
           {".vscode/tasks.json", "warning"},
           {".VSCode/Tasks.json", "warning"},
           {"sub/Cargo.lock", "refused"},
           {"main.tf", "refused"},
           {"a/b/MAIN.TF", "refused"},
           {"deploy/x/y", "refused"},
           {"deploy", "refused"},
           {"a/deploy/x", "refused"},
           {"deploy/docs/x", "refused"},  // Allowed by one, refused by another.
           {"top/x", "warning"},
           {"sub/top/x", "free"},
           {"main.tfx", "free"},
           {".github/workflows/x.yml", "refused"},  // No rule is about it.
           {".agentic-ci/config.yml", "refused"}}) {
    CAPTURE(path);
    CHECK(Judged(path, rules) == judged);
    CHECK(Judged(".github/x", {}) == "refused");
  }
}

TEST_CASE("A pattern that could never match is refused") {
  for (const char* pattern : {"", "/", "!a", "../a", "a/../b", "./a", "a//b", "[a"}) {
    CAPTURE(pattern);
    CHECK_FALSE(PathRule::Parse(pattern, PathAction::kAllow).ok());
  }
}

}  // namespace
}  // namespace change
