// SPDX-License-Identifier: Apache-2.0
#include "run/shown/git_files.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/ascii.h"
#include "base/sys.h"
#include "change/git_pointer.h"
#include "codec/text/git_config.h"
#include "sandbox/mask.h"

namespace run {
namespace {

using sandbox::PathKind;

constexpr char kNoReply[] = "noreply@agentic-ci.invalid";  // RFC 2606: no mail can reach it.
constexpr size_t kGitConfigBytesMax = 1 << 20;
constexpr size_t kAlternatesBytesMax = 1 << 16;
constexpr int kSubmoduleDepthMax =
    4;  // Submodules of submodules; deeper nesting is not seen in practice.
constexpr int kAlternatesDepthMax = 5;  // As git does.

class GitSearch {
 public:
  explicit GitSearch(const std::string& checkout)
      : checkout_(checkout), host_(sandbox::ReadHost(checkout)) {}

  GitFiles Run() {
    const std::string git = checkout_ + "/.git";
    PathKind kind = host_.kind(git);
    if (kind == PathKind::kDirectory) {
      files_.own = files_.common = git;
      AddRepository(git);
    }
    if (kind == PathKind::kFile) FollowGitFile(git);
    return std::move(files_);
  }

 private:
  bool IsDirectory(const std::string& path) const {
    return host_.kind(path) == PathKind::kDirectory;
  }

  void FollowGitFile(const std::string& file) {
    std::optional<std::string> own = change::ReadGitPointer(file, "gitdir: ", checkout_);
    if (!own || host_.kind(*own + "/HEAD") != PathKind::kFile) return;
    std::string common = *own;
    if (host_.kind(*own + "/commondir") == PathKind::kFile) {
      if (change::ReadGitPointer(*own + "/gitdir", "", *own) != file) return;
      std::optional<std::string> shared = change::ReadGitPointer(*own + "/commondir", "", *own);
      if (!shared) return;
      common = *std::move(shared);
    }
    if (!IsDirectory(common + "/objects") || !IsDirectory(common + "/refs")) return;
    files_.own = *own;
    files_.common = common;
    AddDirectory(common, &files_.layers);
    AddDirectory(*own, &files_.layers);
    AddRepository(common);
    if (*own != common) AddConfigs(*own);
  }

  void AddDirectory(const std::string& path, std::vector<std::string>* directories) {
    auto covers = [&](const std::string& shown) { return sandbox::Beneath(path, shown); };
    if (covers(checkout_)) return;
    for (const auto* shown : {&files_.layers, &files_.directories}) {
      if (std::any_of(shown->begin(), shown->end(), covers)) return;
    }
    directories->push_back(path);
  }

  void AddRepository(const std::string& git) {
    AddConfigs(git);
    AddSubmodules(git + "/modules", kSubmoduleDepthMax);
    for (const std::string& name : host_.list(git + "/worktrees")) {
      AddConfigs(git + "/worktrees/" + name);
    }
    AddAlternates(git + "/objects", kAlternatesDepthMax);
  }

  void AddSubmodules(const std::string& modules, int depth) {
    if (depth == 0) return;
    for (const std::string& name : host_.list(modules)) {
      std::string directory = modules + "/" + name;
      if (!IsDirectory(directory)) continue;
      AddConfigs(directory);
      AddSubmodules(directory, depth - 1);
    }
  }

  void AddConfigs(const std::string& git) {
    for (const char* name : {"/config", "/config.worktree"}) {
      std::string path = git + name;
      if (host_.kind(path) == PathKind::kMissing) continue;
      // What cannot be read whole is not shown at all.
      Result<std::string> text = change::ReadGitText(path, kGitConfigBytesMax);
      std::string redacted = text.ok() ? codec::RedactGitConfig(text.value()) : "";
      if (sandbox::Beneath(path, checkout_)) {
        files_.in_checkout.push_back({path.substr(checkout_.size() + 1), std::move(redacted)});
      } else if (host_.kind(path) == PathKind::kFile) {
        files_.outside.push_back({path, std::move(redacted)});
      }
    }
  }

  // The objects of a clone made with --shared or --reference lie in another repository.
  void AddAlternates(const std::string& objects, int depth) {
    if (depth == 0) return;
    Result<std::string> text =
        change::ReadGitText(objects + "/info/alternates", kAlternatesBytesMax);
    if (!text.ok()) return;
    std::istringstream lines(text.value());
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#') continue;
      Result<std::string> real = sys::RealPath(line.front() == '/' ? line : objects + "/" + line);
      if (!real.ok() || !real.value().ends_with("/objects") || !IsDirectory(real.value())) continue;
      AddDirectory(real.value(), &files_.directories);
      AddAlternates(real.value(), depth - 1);
    }
  }

  const std::string& checkout_;
  sandbox::HostView host_;
  GitFiles files_;
};

}  // namespace

GitFiles FindGitFiles(const std::string& checkout) { return GitSearch(checkout).Run(); }

std::string RenderGitConfig(const std::string& agent) {
  const bool plain = std::all_of(agent.begin(), agent.end(), [](char c) {
    return ascii::IsAlphanumeric(c) || c == '-' || c == '_';
  });
  return "[user]\n\tname = " + (plain ? agent : "agentic-ci") + "\n\temail = " + kNoReply +
         "\n[core]\n\tcheckStat = minimal\n";
}

}  // namespace run
