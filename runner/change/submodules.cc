// SPDX-License-Identifier: Apache-2.0
#include "change/submodules.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/sys.h"
#include "change/git_pointer.h"

namespace change {
namespace {

// libgit2 opens what it is given without looking, and would wait for a pipe's writer for ever.
GitIndex OpenIndex(const std::string& top) {
  std::optional<std::string> git = GitDirectoryOf(top);
  if (!git || !StartGit().ok()) return nullptr;
  const std::string path = *git + "/index";
  struct stat facts {};
  git_index* raw = nullptr;
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return nullptr;
  if (git_index_open(&raw, path.c_str()) != 0) return nullptr;
  return GitIndex(raw);
}

}  // namespace

Submodules::Submodules(int checkout) : checkout_(checkout) {}

void Submodules::Add(const std::string& path) {
  Result<std::string> top = sys::RealPath("/proc/self/fd/" + std::to_string(checkout_));
  found_.push_back({path + "/", top.ok() ? OpenIndex(top.value() + "/" + path) : nullptr});
}

bool Submodules::IsTop(const std::string& path) const {
  return std::any_of(found_.begin(), found_.end(),
                     [&](const Submodule& one) { return one.prefix == path + "/"; });
}

const Submodules::Submodule* Submodules::Innermost(const std::string& path) const {
  const Submodule* innermost = nullptr;
  for (const Submodule& one : found_) {
    if (!path.starts_with(one.prefix)) continue;
    if (innermost == nullptr || innermost->prefix.size() < one.prefix.size()) innermost = &one;
  }
  return innermost;
}

bool Submodules::Tracks(const std::string& path) const {
  const Submodule* own = Innermost(path);
  if (own == nullptr) return false;
  if (own->index == nullptr) return true;
  std::string inside = path.substr(own->prefix.size());
  size_t at = 0;
  return git_index_get_bypath(own->index.get(), inside.c_str(), 0) != nullptr ||
         git_index_find_prefix(&at, own->index.get(), (inside + "/").c_str()) == 0;
}

}  // namespace change
