// SPDX-License-Identifier: Apache-2.0
#include "change/protected_links.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <optional>
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

  std::vector<ProtectedLink> Take() const {
    std::vector<ProtectedLink> links;
    for (const auto& [path, target] : links_) links.push_back({path, target});
    return links;
  }

 private:
  // The name stands for what is beneath it too, as with `.github`.
  static bool IsProtected(const std::string& path) {
    return FindProtectedPath(path, {}) || FindProtectedPath(path + "/x", {});
  }

  void Add(const std::string& path) {
    std::string target;
    Result<std::string> real = sys::RealPath(top_ + "/" + path);
    if (real.ok()) {
      if (!real.value().starts_with(top_ + "/")) return;
      target = real.value().substr(top_.size() + 1);
    } else {
      // It leads to nothing yet: the agent may make what it leads to.
      std::string text = sys::ReadLink(top_ + "/" + path).value_or("");
      if (text.empty() || text.starts_with('/')) return;
      size_t slash = path.rfind('/');
      std::string before = slash == std::string::npos ? "" : path.substr(0, slash + 1);
      std::optional<std::string> inside = Normalise(before + text);
      if (!inside || inside->empty()) return;
      target = *inside;
    }
    links_[path] = target;
  }

  const std::string& top_;
  int entries_ = 0;
  std::map<std::string, std::string> links_;
};

}  // namespace

std::vector<ProtectedLink> FindProtectedLinks(const std::string& top,
                                              const std::vector<std::string>& tracked) {
  Search search(top);
  search.TakeTracked(tracked);
  search.List("", 1);
  return search.Take();
}

}  // namespace change
