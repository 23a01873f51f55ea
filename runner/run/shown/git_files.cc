// SPDX-License-Identifier: Apache-2.0
#include "run/shown/git_files.h"

#include <algorithm>
#include <optional>
#include <set>
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
constexpr int kSubmoduleDepthMax = 2048;  // The parts of names: a path has no more.
constexpr int kAlternatesDepthMax = 5;    // The bound of git.
constexpr int kIncludeDepthMax = 10;      // The bound of git.

class GitSearch {
 public:
  explicit GitSearch(const std::string& checkout)
      : checkout_(checkout), host_(sandbox::ReadHost(checkout)) {}

  Result<GitFiles> Run(const std::vector<std::string>& nested, std::vector<Seen>* seen) {
    const std::string git = checkout_ + "/.git";
    PathKind kind = host_.kind(git);
    if (kind == PathKind::kDirectory) {
      files_.own = files_.common = git;
      AddRepository(git);
    }
    if (kind == PathKind::kFile) FollowGitFile(git);
    shown_in_ = &files_.nested;
    for (const std::string& other : nested) AddAllConfigs(other);
    for (const std::string& layer : files_.layers) {
      std::vector<Seen> of_layer;
      const LeftFiles left = TRY(FindLeftFiles(layer, "", seen ? &of_layer : nullptr, true));
      for (const Seen& one : of_layer) seen->push_back({layer + "/" + one.path, one.changed});
      for (const std::string& path : left.credentials) {
        files_.outside.push_back({layer + "/" + path, ""});
      }
    }
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

  void AddAllConfigs(const std::string& git) {
    AddConfigs(git);
    AddSubmodules(git + "/modules", kSubmoduleDepthMax);
    for (const std::string& name : host_.list(git + "/worktrees")) {
      AddConfigs(git + "/worktrees/" + name);
      AddSubmodules(git + "/worktrees/" + name + "/modules", kSubmoduleDepthMax);
    }
  }

  void AddRepository(const std::string& git) {
    AddAllConfigs(git);
    AddAlternates(git + "/objects", kAlternatesDepthMax);
  }

  // A name may have several parts, which are directories; a submodule has its own in `modules`.
  void AddSubmodules(const std::string& modules, int depth) {
    if (depth == 0) return;
    for (const std::string& name : host_.list(modules)) {
      const std::string directory = modules + "/" + name;
      if (!IsDirectory(directory)) continue;
      AddConfigs(directory);
      const bool whole = host_.kind(directory + "/HEAD") == PathKind::kFile;
      AddSubmodules(whole ? directory + "/modules" : directory, depth - 1);
    }
  }

  void AddConfigs(const std::string& git) {
    const bool own = git == files_.own || git == files_.common;
    const std::string top = own ? checkout_ : "";
    for (const char* name : {"/config", "/config.worktree"}) {
      std::string path = git + name;
      if (host_.kind(path) == PathKind::kMissing) continue;
      // A configuration that cannot be read whole is not shown at all.
      Result<std::string> text = change::ReadGitText(path, kGitConfigBytesMax);
      std::string redacted = text.ok() ? codec::RedactGitConfig(text.value(), top) : "";
      if (text.ok()) AddIncluded(git, text.value(), kIncludeDepthMax);
      if (sandbox::Beneath(path, checkout_)) {
        if (shown_in_ == &files_.nested && text.ok() && text.value() == redacted) continue;
        shown_in_->push_back({path.substr(checkout_.size() + 1), std::move(redacted)});
      } else if (host_.kind(path) == PathKind::kFile) {
        files_.outside.push_back({path, std::move(redacted)});
      }
    }
  }

  // Adds the files that a configuration includes, in which a checkout step keeps its credentials.
  void AddIncluded(const std::string& directory, const std::string& text, int depth) {
    if (depth == 0) return;
    for (const std::string& name : codec::IncludedGitConfigs(text)) {
      const bool in_home = name.starts_with("~/");
      Result<std::string> real = sys::RealPath(in_home               ? host_.home + name.substr(1)
                                               : name.front() == '/' ? name
                                                                     : directory + "/" + name);
      if (!real.ok() || host_.kind(real.value()) != PathKind::kFile) continue;
      const std::string& path = real.value();
      if (!included_.insert(path).second) continue;
      if (sandbox::Beneath(path, checkout_)) {
        files_.included.push_back(path.substr(checkout_.size() + 1));
      } else {
        files_.included_outside.push_back(path);
      }
      Result<std::string> more = change::ReadGitText(path, kGitConfigBytesMax);
      if (more.ok()) AddIncluded(path.substr(0, path.rfind('/')), more.value(), depth - 1);
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
  std::vector<sandbox::WorkspaceFile>* shown_in_ = &files_.in_checkout;
  std::set<std::string> included_;
};

}  // namespace

Result<GitFiles> FindGitFiles(const std::string& checkout, const std::vector<std::string>& nested,
                              std::vector<Seen>* seen) {
  return GitSearch(checkout).Run(nested, seen);
}

std::string RenderGitConfig(const std::string& agent) {
  const bool plain = std::all_of(agent.begin(), agent.end(), [](char c) {
    return ascii::IsAlphanumeric(c) || c == '-' || c == '_';
  });
  return "[user]\n\tname = " + (plain ? agent : "agentic-ci") + "\n\temail = " + kNoReply +
         "\n[core]\n\tcheckStat = minimal\n";
}

}  // namespace run
