// SPDX-License-Identifier: Apache-2.0
#include "change/protected_links.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
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
constexpr int kStepsMax = 1'000'000;
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

class Search {
 public:
  explicit Search(const std::string& top) : top_(top) {}

  void List(const std::string& directory, int depth) {
    Result<Fd> fd = sys::Open(top_ + "/" + directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok()) return;
    Result<std::vector<std::string>> names = sys::DirectoryNames(fd.value().get());
    if (!names.ok()) return;
    for (const std::string& name : names.value()) {
      if (++entries_ > kEntriesMax) return;
      struct stat st {};
      if (NamesGitDirectory(name)) continue;
      if (::fstatat(fd.value().get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode)) continue;
      std::string path = directory.empty() ? name : directory + "/" + name;
      bool is_protected = IsProtected(path);
      if (S_ISLNK(st.st_mode) && is_protected) Add(path);
      if (!S_ISDIR(st.st_mode)) continue;
      if (depth < (is_protected ? kProtectedDepth : kOrdinaryDepth)) List(path, depth + 1);
    }
  }

  void TakeTracked(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (IsProtected(path)) Add(path);
    }
  }

  // Adds what links lead to that lie in a directory which a link found so far leads to: they are
  // read by a protected name too. `tracked` is sorted.
  void FollowDirectories(const std::vector<std::string>& tracked) {
    std::set<std::string> followed;
    int steps = 0;
    for (size_t i = 0; i < links_.size() && steps < kStepsMax; ++i) {
      const ProtectedLink link = links_[i];
      const std::string above = link.target + "/";
      for (auto path = std::lower_bound(tracked.begin(), tracked.end(), above);
           path != tracked.end() && path->starts_with(above) && ++steps < kStepsMax; ++path) {
        const std::string name = link.path + path->substr(link.target.size());
        if (IsProtected(name) && followed.insert(*path).second) Follow(name, *path);
      }
    }
  }

  std::vector<ProtectedLink> Take() {
    std::sort(links_.begin(), links_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.path, a.target) < std::tie(b.path, b.target);
    });
    return std::move(links_);
  }

 private:
  // The name stands for what is beneath it too, as with `.github`.
  static bool IsProtected(const std::string& path) {
    return FindProtectedPath(path, {}) || FindProtectedPath(path + "/x", {});
  }

  void Add(const std::string& path) { Follow(path, path); }

  // Walks the path of the link at `place` as the kernel would, and adds each place where the walk
  // goes on as one that `name` leads to. Where nothing is yet, the agent may make it; where a link
  // is, another one.
  void Follow(const std::string& name, const std::string& place) {
    // A link may also lead outside of the tree and back.
    Result<std::string> real = sys::RealPath(top_ + "/" + place);
    if (real.ok() && real.value().starts_with(top_ + "/")) {
      Insert(name, real.value().substr(top_.size() + 1));
    }
    std::vector<std::string> ahead;  // The components to come, the next one last.
    AddComponents(place, &ahead);
    std::string at;
    for (int hops = 0; !ahead.empty();) {
      const std::string next_name = std::move(ahead.back());
      ahead.pop_back();
      if (next_name == "..") {
        if (at.empty()) return;  // It leads outside.
        const size_t slash = at.rfind('/');
        at.resize(slash == std::string::npos ? 0 : slash);
        continue;
      }
      const std::string next = at.empty() ? next_name : at + "/" + next_name;
      const std::string text = sys::ReadLink(top_ + "/" + next).value_or("");
      if (text.empty()) {
        at = next;
        continue;
      }
      if (next != place) Insert(name, next);
      if (++hops > kHopsMax) return;  // It leads nowhere.
      if (text.starts_with('/')) return;
      AddComponents(text, &ahead);
    }
    if (!at.empty() && at != place) Insert(name, at);
  }

  void Insert(const std::string& name, const std::string& target) {
    if (known_.emplace(name, target).second) links_.push_back({name, target});
  }

  const std::string& top_;
  int entries_ = 0;
  std::vector<ProtectedLink> links_;
  std::set<std::pair<std::string, std::string>> known_;
};

}  // namespace

std::vector<ProtectedLink> FindProtectedLinks(const std::string& top,
                                              const std::vector<std::string>& tracked) {
  Search search(top);
  search.TakeTracked(tracked);
  search.List("", 1);
  std::vector<std::string> sorted = tracked;
  std::sort(sorted.begin(), sorted.end());
  search.FollowDirectories(sorted);
  return search.Take();
}

}  // namespace change
