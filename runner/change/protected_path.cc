// SPDX-License-Identifier: Apache-2.0
#include "change/protected_path.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "codec/text/fold.h"

namespace change {
namespace {

// PATH_MAX is 4096 with its NUL; the rest is room for the checkout's own path.
constexpr size_t kPathBytesMax = 4000;

// Returns whether NTFS may know another file by this name (folded): VSCODE~1 is `.vscode`,
// MCP~1.JSO `.mcp.json`. Which file it is depends on what else the directory has, and is not in the
// name.
bool MayBeShortName(std::string_view name) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string_view extension = name.substr(std::min(dot + 1, name.size()));
  const std::string_view base = name.substr(0, dot);
  const size_t tilde = base.rfind('~');
  return tilde != std::string_view::npos && tilde > 0 && base.size() <= 8 &&
         ascii::IsNumber(base.substr(tilde + 1)) && extension.size() <= 3 &&
         extension.find('.') == std::string_view::npos;
}

struct Rule {
  std::string_view name;  // Folded. With a trailing `/`: a directory and everything beneath it.
  std::string_view what;
  bool anywhere = false;  // Otherwise only at the top (name may have several components).
  bool refused = true;
};

constexpr std::string_view kCi = "CI configuration, which runs with the repository's permissions";
constexpr std::string_view kForge = "forge configuration";
constexpr std::string_view kOwners = "code owners";
constexpr std::string_view kMerge = "configuration of who may merge, and what merges by itself";
constexpr std::string_view kService =
    "configuration of a service, which runs commands with the repository's permissions";
constexpr std::string_view kHooks = "git hooks, which run on other people's machines";
constexpr std::string_view kAgent = "agent instructions";
constexpr std::string_view kEditor =
    "editor configuration, which can run commands on other people's machines";
constexpr std::string_view kTool =
    "tool configuration, which can run commands on other people's machines";
constexpr std::string_view kHome =
    "configuration of a home directory, which can run commands or has credentials";
constexpr std::string_view kPackages = "package sources and versions";
constexpr std::string_view kOwn = ".agentic-ci/";

constexpr Rule kRules[] = {
    {".github/", kForge},
    {".gitlab/", kForge},
    {".gitea/", kForge},
    {".forgejo/", kForge},
    {kOwn, "agentic-ci's own policy and configuration"},
    {".gitlab-ci.yml", kCi},
    {".circleci/", kCi},
    {".buildkite/", kCi},
    {".woodpecker/", kCi},
    {".woodpecker.yml", kCi},
    {".woodpecker.yaml", kCi},
    {".drone.yml", kCi},
    {".drone.yaml", kCi},
    {".drone.star", kCi},
    {".drone.jsonnet", kCi},
    {".travis.yml", kCi},
    {".cirrus.yml", kCi},
    {".cirrus.star", kCi},
    {"azure-pipelines.yml", kCi},
    {"azure-pipelines.yaml", kCi},
    {".azure-pipelines/", kCi},
    {"bitbucket-pipelines.yml", kCi},
    {"jenkinsfile", kCi},
    {".tekton/", kCi},
    {"appveyor.yml", kCi},
    {".appveyor.yml", kCi},
    {"cloudbuild.yaml", kCi},
    {"cloudbuild.yml", kCi},
    {"cloudbuild.json", kCi},
    {"buildspec.yml", kCi},
    {"buildspec.yaml", kCi},
    {".semaphore/", kCi},
    {".teamcity/", kCi},
    {".build.yml", kCi},
    {".builds/", kCi},
    {".taskcluster.yml", kCi},
    {"bamboo-specs/", kCi},
    {".harness/", kCi},
    {".zuul.yaml", kCi},
    {"zuul.yaml", kCi},
    {".zuul.d/", kCi},
    {"zuul.d/", kCi},
    {"screwdriver.yaml", kCi},
    {"bitrise.yml", kCi},
    {"codemagic.yaml", kCi},
    {".packit.yaml", kCi},
    // Read at the top, in docs/ and in the forge's directory; those are covered above.
    {"codeowners", kOwners},
    {"docs/codeowners", kOwners},
    {"owners", kOwners, true},
    {"owners_aliases", kOwners},
    {".mergify.yml", kMerge},
    {".mergify/", kMerge},
    {".kodiak.toml", kMerge},
    {".bulldozer.yml", kMerge},
    {".policy.yml", kMerge},
    {"bors.toml", kMerge},
    {".coderabbit.yaml", kMerge},
    {".coderabbit.yml", kMerge},
    {".prow.yaml", kCi},
    {".prow/", kCi},
    {"netlify.toml", kService, true},
    {"vercel.json", kService, true},
    {".readthedocs.yaml", kService},
    {".readthedocs.yml", kService},
    {".gitpod.yml", kService},
    {".gitpod.dockerfile", kService},
    {".husky/", kHooks},
    {".githooks/", kHooks},
    {".pre-commit-config.yaml", kHooks},
    {".pre-commit-config.yml", kHooks},
    {"lefthook.yml", kHooks},
    {".lefthook.yml", kHooks},
    {"lefthook.yaml", kHooks},
    {".lefthook.yaml", kHooks},
    {"lefthook.toml", kHooks},
    {".lefthook.toml", kHooks},
    {"lefthook.json", kHooks},
    {".lefthook.json", kHooks},
    {".vscode/", kEditor, true},
    {".idea/", kEditor, true},
    {".devcontainer/", kEditor, true},
    {".devcontainer.json", kEditor, true},
    {".zed/", kEditor, true},
    {".fleet/", kEditor, true},
    {".envrc", kTool, true},
    {"mise.toml", kTool, true},
    {".mise.toml", kTool, true},
    {"mise.local.toml", kTool, true},
    {".mise.local.toml", kTool, true},
    {"mise/config.toml", kTool, true},
    {".mise/config.toml", kTool, true},
    {".config/mise.toml", kTool, true},
    {".config/mise/", kTool, true},
    {".tool-versions", kTool, true},
    {".cargo/config.toml", kTool, true},
    {".cargo/config", kTool, true},
    {".pnpmfile.cjs", kTool, true},
    // Homes are kept in git, too.
    {".bashrc", kHome},
    {".bash_profile", kHome},
    {".bash_login", kHome},
    {".bash_logout", kHome},
    {".bash_aliases", kHome},
    {".profile", kHome},
    {".zshrc", kHome},
    {".zshenv", kHome},
    {".zprofile", kHome},
    {".zlogin", kHome},
    {".zlogout", kHome},
    {".kshrc", kHome},
    {".cshrc", kHome},
    {".tcshrc", kHome},
    {".login", kHome},
    {".logout", kHome},
    {".inputrc", kHome},
    {".pam_environment", kHome},
    {".xinitrc", kHome},
    {".xprofile", kHome},
    {".xsession", kHome},
    {".xsessionrc", kHome},
    {".gitconfig", kHome},
    {".config/git/", kHome},
    {".ripgreprc", kHome},
    {".curlrc", kHome},
    {".wgetrc", kHome},
    {".netrc", kHome},
    {".pypirc", kHome},
    {".pip/", kHome},
    {".config/pip/", kHome},
    {".condarc", kHome},
    {".gemrc", kHome},
    {".m2/settings.xml", kHome},
    {".gradle/init.gradle", kHome},
    {".gradle/init.d/", kHome},
    {".aws/config", kHome},
    {".aws/credentials", kHome},
    {".azure/config", kHome},
    {".config/gcloud/", kHome},
    {".config/gh/", kHome},
    {".ssh/", kHome},
    {".gnupg/", kHome},
    {".docker/config.json", kHome},
    {".kube/config", kHome},
    {".config/fish/", kHome},
    {".config/nvim/", kHome},
    {".config/systemd/", kHome},
    {".config/autostart/", kHome},
    {".local/bin/", kHome},
    {".tmux.conf", kHome},
    {".screenrc", kHome},
    {".emacs", kHome},
    {".emacs.d/", kHome},
    {".vim/", kHome},
    {".pythonrc", kHome},
    {".psqlrc", kHome},
    {".sqliterc", kHome},
    {".mysqlrc", kHome},
    {".my.cnf", kHome},
    {".vimrc", kTool, true},
    {".exrc", kTool, true},
    {".nvimrc", kTool, true},
    {".nvim.lua", kTool, true},
    {".dir-locals.el", kTool, true},
    {".gdbinit", kTool, true},
    {".lldbinit", kTool, true},
    {".rprofile", kTool, true},
    {".irbrc", kTool, true},
    {".pryrc", kTool, true},
    {".ghci", kTool, true},
    {".bundle/config", kTool, true},
    {".npmrc", kPackages, true},
    {".yarnrc", kPackages, true},
    {".yarnrc.yml", kPackages, true},
    {"bunfig.toml", kPackages, true},
    {"renovate.json", kPackages},
    {"renovate.json5", kPackages},
    {".renovaterc", kPackages},
    {".renovaterc.json", kPackages},
    {".renovaterc.json5", kPackages},
    {"action.yml", kCi, true},
    {"action.yaml", kCi, true},
    // Adding a dependency changes these.
    {"package-lock.json", kPackages, true, false},
    {"npm-shrinkwrap.json", kPackages, true, false},
    {"yarn.lock", kPackages, true, false},
    {"pnpm-lock.yaml", kPackages, true, false},
    {"bun.lock", kPackages, true, false},
    {"bun.lockb", kPackages, true, false},
    {"deno.lock", kPackages, true, false},
    {"cargo.lock", kPackages, true, false},
    {"go.sum", kPackages, true, false},
    {"poetry.lock", kPackages, true, false},
    {"uv.lock", kPackages, true, false},
    {"pdm.lock", kPackages, true, false},
    {"pipfile.lock", kPackages, true, false},
    {"gemfile.lock", kPackages, true, false},
    {"composer.lock", kPackages, true, false},
    {"packages.lock.json", kPackages, true, false},
    {"gradle.lockfile", kPackages, true, false},
    {"mix.lock", kPackages, true, false},
    {"flake.lock", kPackages, true, false},
    {".gitmodules", "submodule sources"},
    {"claude.md", kAgent, true},
    {"claude.local.md", kAgent, true},
    {"agents.md", kAgent, true},
    {"agents.override.md", kAgent, true},
    {"gemini.md", kAgent, true},
    {"copilot-instructions.md", kAgent, true},
    {".github/instructions/", kAgent},
    {".github/agents/", kAgent},
    {".github/skills/", kAgent},
    {".agents/", kAgent, true},
    {".pi/", kAgent, true},
    {".cursorrules", kAgent, true},
    {".windsurfrules", kAgent, true},
    {".clinerules", kAgent, true},
    {".clinerules/", kAgent, true},
    {".mcp.json", kAgent, true},
    {".claude/", kAgent, true},
    {".codex/", kAgent, true},
    {".cursor/", kAgent, true},
    {".gemini/", kAgent, true},
    {".opencode/", kAgent, true},
    {"opencode.json", kAgent, true},
    {"opencode.jsonc", kAgent, true},
    {".aider.conf.yml", kAgent, true},
    {".roo/", kAgent, true},
    {".roorules", kAgent, true},
    {".roomodes", kAgent, true},
    {".kilocode/", kAgent, true},
    {".windsurf/", kAgent, true},
    {".continue/", kAgent, true},
    {".kiro/", kAgent, true},
    {".amazonq/", kAgent, true},
    {".junie/", kAgent, true},
    {".goosehints", kAgent, true},
    {".qwen/", kAgent, true},
    // Binds paths to drivers, but only to drivers the reader's own configuration defines, so
    // nothing runs. It can hide files from review (`-diff`, linguist-generated): a warning.
    {".gitattributes", "diff settings, which can hide changes from review", true, false},
};

// Returns whether `path` (folded) starts with the rule's name at `path`'s start, on component
// boundaries.
bool MatchesHere(std::string_view path, const Rule& rule) {
  std::string_view name = rule.name;
  bool directory = name.back() == '/';
  if (directory) name.remove_suffix(1);
  if (!path.starts_with(name)) return false;
  if (path.size() == name.size()) return true;  // Also a file or link in the place of a directory.
  return directory && path[name.size()] == '/';
}

bool Matches(std::string_view path, const Rule& rule) {
  for (;;) {
    if (MatchesHere(path, rule)) return true;
    size_t slash = path.find('/');
    if (!rule.anywhere || slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

// Calls `visit` with each component; stops and gives false when it gives false.
template <typename Visit>
bool EachComponent(std::string_view path, Visit visit) {
  for (;;) {
    size_t slash = path.find('/');
    if (!visit(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

bool NamesGitDirectory(std::string_view component) {
  // NTFS takes a backslash for a separator.
  for (;;) {
    size_t backslash = component.find('\\');
    std::string folded = codec::FoldFileName(component.substr(0, backslash));
    if (folded == ".git" || folded == "git~1") return true;
    if (backslash == std::string_view::npos) return false;
    component.remove_prefix(backslash + 1);
  }
}

bool ValidPath(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  return EachComponent(path, [](std::string_view component) {
    return !component.empty() && component != "." && component != ".." &&
           !NamesGitDirectory(component);
  });
}

namespace {

// Returns whether the target leaves the checkout where only `/` parts names.
bool MayLeave(std::string_view path, std::string_view target) {
  if (target.front() == '/') return true;
  auto depth = std::count(path.begin(), path.end(), '/');
  bool named = false;
  return !EachComponent(target, [&](std::string_view component) {
    if (component.empty() || component == ".") return true;
    if (component == "..") return !named && --depth >= 0;
    named = true;
    return !NamesGitDirectory(component);
  });
}

}  // namespace

bool LinkMayLeave(std::string_view path, std::string_view target) {
  if (target.empty() || target.find('\0') != std::string_view::npos) return true;
  const bool drive = target.size() > 1 && ascii::IsAlpha(target[0]) && target[1] == ':';
  std::string slashes(target);
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  return drive || MayLeave(path, target) || MayLeave(path, slashes);
}

Result<PathRule> PathRule::Parse(std::string_view pattern, PathAction action) {
  std::string_view inner = pattern;
  bool anchored = inner.starts_with('/');
  if (anchored) inner.remove_prefix(1);
  if (inner.ends_with('/')) inner.remove_suffix(1);
  bool reachable = !inner.starts_with('!') && EachComponent(inner, [](std::string_view component) {
    return !component.empty() && component != "." && component != "..";
  });
  if (!reachable) {
    return Error{Code::kInvalid, "'" + std::string(pattern) + "' is not a path in the checkout"};
  }
  anchored = anchored || inner.find('/') != std::string_view::npos;
  const std::string folded = (anchored ? "" : "**/") + codec::FoldFileText(inner);
  codec::Glob glob = TRY(codec::Glob::Parse(folded, '/'));
  return PathRule{std::string(pattern), action, std::move(glob)};
}

bool IsAgentInstruction(std::string_view path) {
  std::string folded;
  EachComponent(path, [&](std::string_view component) {
    folded += (folded.empty() ? "" : "/") + codec::FoldFileName(component);
    return true;
  });
  return std::any_of(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return rule.what == kAgent && Matches(folded, rule);
  });
}

namespace {

// Returns `path` with backslashes for separators, and what they part resolved.
std::string SplitAtBackslashes(std::string_view path) {
  std::string slashes(path);
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  std::string out;
  EachComponent(slashes, [&](std::string_view component) {
    if (component.empty() || component == ".") return true;
    if (component == "..") {
      const size_t last = out.rfind('/');
      out.erase(last == std::string::npos ? 0 : last);
      return true;
    }
    if (!out.empty()) out += '/';
    out += component;
    return true;
  });
  return out;
}

std::optional<ProtectedPath> FindAsWritten(std::string_view path,
                                           const std::vector<PathRule>& rules) {
  std::string folded;
  const PathRule* strictest = nullptr;
  bool short_name = false;
  EachComponent(path, [&](std::string_view component) {
    if (!folded.empty()) folded += '/';
    const std::string name = codec::FoldFileName(component);
    short_name = short_name || MayBeShortName(name);
    folded += name;
    for (const PathRule& rule : rules) {
      if (strictest != nullptr && rule.action <= strictest->action) continue;
      if (rule.glob.Matches(folded)) strictest = &rule;
    }
    return true;
  });
  const Rule* known = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const Rule& rule) { return Matches(folded, rule); });
  if (known == std::end(kRules)) known = nullptr;
  // AGENTI~1, or with four digits of a hash AG12AB~1.
  const bool own = known != nullptr ? known->name == kOwn
                                    : folded.starts_with("ag") &&
                                          MayBeShortName(folded.substr(0, folded.find('/')));
  if (strictest != nullptr && !own) {
    if (strictest->action == PathAction::kAllow) return std::nullopt;
    std::string why =
        known != nullptr ? "protected file: " + std::string(known->what) : "protected";
    return ProtectedPath{why + " ('" + strictest->pattern + "' in the configuration)",
                         strictest->action == PathAction::kRefuse};
  }
  if (known == nullptr && !short_name) return std::nullopt;
  if (known == nullptr || (short_name && !known->refused)) {
    return ProtectedPath{"a short name, by which NTFS may know a protected file"};
  }
  return ProtectedPath{"protected file: " + std::string(known->what), known->refused};
}

}  // namespace

std::optional<ProtectedPath> FindProtectedPath(std::string_view path,
                                               const std::vector<PathRule>& rules) {
  std::optional<ProtectedPath> found = FindAsWritten(path, rules);
  if (path.find('\\') == std::string_view::npos || (found && found->refused)) return found;
  std::optional<ProtectedPath> split = FindAsWritten(SplitAtBackslashes(path), rules);
  return split ? split : found;
}

}  // namespace change
