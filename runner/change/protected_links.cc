// SPDX-License-Identifier: Apache-2.0
#include "change/protected_links.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"
#include "change/protected_path.h"

namespace change {
namespace {

constexpr int kOrdinaryDepth = 2;  // The top and the directories there.
constexpr int kProtectedDepth = 8;
constexpr int kEntriesMax = 20'000;
constexpr int kStepsMax = 100'000;
constexpr int kHopsMax = 40;  // The kernel follows as many.

// Puts the components of a path before those in `ahead`, of which the next one is last.
void AddComponents(std::string_view path, std::vector<std::string>* ahead) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!name.empty() && name != ".") names.emplace_back(name);
  }
  ahead->insert(ahead->end(), names.rbegin(), names.rend());
}

// Looks for links at protected paths in the file system.
class Search {
 public:
  Search(const std::string& top, LinkWalk* walk) : top_(top), walk_(*walk) {}

  Status List(const std::string& directory, int depth) {
    Result<Fd> fd = sys::Open(top_ + "/" + directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok()) return Ok();
    Result<std::vector<std::string>> names = sys::DirectoryNames(fd.value().get());
    if (!names.ok()) return Ok();
    for (const std::string& name : names.value()) {
      if (++entries_ > kEntriesMax) return Ok();
      struct stat st {};
      if (NamesGitDirectory(name)) continue;
      if (::fstatat(fd.value().get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode)) continue;
      std::string path = directory.empty() ? name : directory + "/" + name;
      bool is_protected = StandsForProtected(path);
      if (S_ISLNK(st.st_mode) && is_protected) TRY(walk_.Follow(path, path));
      if (!S_ISDIR(st.st_mode)) continue;
      if (depth < (is_protected ? kProtectedDepth : kOrdinaryDepth)) TRY(List(path, depth + 1));
    }
    return Ok();
  }

 private:
  const std::string& top_;
  LinkWalk& walk_;
  int entries_ = 0;
};

}  // namespace

Status LinkWalk::Follow(const std::string& name, const std::string& place) {
  const std::string real = resolve_ ? resolve_(place) : "";
  if (!real.empty()) Add(name, real);
  std::vector<std::string> ahead;  // The components to come, the next one last.
  AddComponents(place, &ahead);
  std::string at;
  for (int hops = 0; !ahead.empty();) {
    const std::string next_name = std::move(ahead.back());
    ahead.pop_back();
    if (next_name == "..") {
      if (at.empty()) return Ok();  // It leads outside.
      const size_t slash = at.rfind('/');
      at.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    const std::string next = at.empty() ? next_name : at + "/" + next_name;
    const std::string text = TRY(read_text_(next));
    if (text.empty()) {
      at = next;
      continue;
    }
    if (next != place) Add(name, next);
    if (++hops > kHopsMax) return Ok();  // It leads nowhere.
    if (text.starts_with('/')) return Ok();
    AddComponents(text, &ahead);
  }
  if (!at.empty() && at != place) Add(name, at);
  return Ok();
}

Status LinkWalk::FollowDirectories(const std::vector<std::string>& paths) {
  std::set<std::string> followed;
  int steps = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    const ProtectedLink link = links_[i];
    const std::string above = link.target + "/";
    for (auto path = std::lower_bound(paths.begin(), paths.end(), above);
         path != paths.end() && path->starts_with(above); ++path) {
      if (++steps > kStepsMax) return Error{Code::kInvalid, "too many symbolic links"};
      const std::string name = link.path + path->substr(link.target.size());
      if (!StandsForProtected(name) || !followed.insert(*path).second) continue;
      TRY(Follow(name, *path));
    }
  }
  return Ok();
}

void LinkWalk::Add(const std::string& name, const std::string& target) {
  if (known_.emplace(name, target).second) links_.push_back({name, target});
}

bool StandsForProtected(const std::string& path) {
  return FindProtectedPath(path, {}) || FindProtectedPath(path + "/x", {});
}

Result<std::vector<ProtectedLink>> FindProtectedLinks(const std::string& top,
                                                      const std::vector<std::string>& tracked) {
  const std::string inside = top + "/";
  LinkWalk walk(
      [&](const std::string& path) -> Result<std::string> {
        return sys::ReadLink(inside + path).value_or("");
      },
      [&](const std::string& path) {
        Result<std::string> real = sys::RealPath(inside + path);
        const bool leads_inside = real.ok() && real.value().starts_with(inside);
        return leads_inside ? real.value().substr(inside.size()) : std::string();
      });
  std::vector<std::string> sorted = tracked;
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& path : sorted) {
    if (StandsForProtected(path)) TRY(walk.Follow(path, path));
  }
  TRY(Search(top, &walk).List("", 1));
  TRY(walk.FollowDirectories(sorted));
  std::vector<ProtectedLink> links = walk.links();
  std::sort(links.begin(), links.end(), [](const auto& a, const auto& b) {
    return std::tie(a.path, a.target) < std::tie(b.path, b.target);
  });
  return links;
}

}  // namespace change
