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
constexpr int kHopsMax = 40;  // The kernel follows as many.

// `a/b/../c` -> `a/c`; nullopt for what leaves the tree.
std::optional<std::string> Normalise(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : "/") + part;
  return joined;
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
  // read by a protected name too.
  void FollowDirectories(const std::vector<std::string>& tracked) {
    std::set<std::string> followed;
    for (size_t i = 0; i < links_.size(); ++i) {
      const ProtectedLink link = links_[i];
      for (const std::string& path : tracked) {
        if (!path.starts_with(link.target + "/")) continue;
        const std::string name = link.path + path.substr(link.target.size());
        if (IsProtected(name) && followed.insert(path).second) AddHops(name, path);
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

  void Add(const std::string& path) { AddHops(path, path); }

  // Adds every place that `name` leads to, by the link at `place`, by the links that this leads to,
  // and in the end. Where nothing is yet, the agent may make it; where a link is, another file.
  void AddHops(const std::string& name, const std::string& place) {
    std::string at = place;
    for (int hops = 0; hops < kHopsMax; ++hops) {
      std::string text = sys::ReadLink(top_ + "/" + at).value_or("");
      if (text.empty() || text.starts_with('/')) break;
      size_t slash = at.rfind('/');
      std::string before = slash == std::string::npos ? "" : at.substr(0, slash + 1);
      std::optional<std::string> inside = Normalise(before + text);
      if (!inside || inside->empty()) break;
      Insert(name, *inside);
      at = *std::move(inside);
    }
    Result<std::string> real = sys::RealPath(top_ + "/" + place);
    if (real.ok() && real.value().starts_with(top_ + "/")) {
      Insert(name, real.value().substr(top_.size() + 1));
    }
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
  search.FollowDirectories(tracked);
  return search.Take();
}

}  // namespace change
