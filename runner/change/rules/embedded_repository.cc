// SPDX-License-Identifier: Apache-2.0
#include "change/rules/embedded_repository.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/sys.h"
#include "base/tree.h"
#include "codec/text/fold.h"

namespace change {
namespace {

// Folded. What makes a directory a repository, and what git runs or follows in one.
constexpr std::array<std::string_view, 13> kParts = {
    "head",  "objects", "refs",    "commondir", "gitdir",      "config", "config.worktree",
    "hooks", "info",    "modules", "worktrees", "packed-refs", "index"};

// Calls `visit(directory, name)` for each directory above `path` that the path has a part in.
template <typename Visit>
void EachPart(std::string_view path, Visit visit) {
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    std::string name = codec::FoldFileName(path.substr(at, end - at));
    if (std::find(kParts.begin(), kParts.end(), name) != kParts.end()) {
      visit(std::string(path.substr(0, at == 0 ? 0 : at - 1)), std::move(name));
    }
    at = end + 1;
  }
}

struct Candidate {
  size_t file = 0;
  std::set<std::string> names = {};
};

bool IsRepository(const std::set<std::string>& names) {
  const bool own = names.contains("objects") && names.contains("refs");
  return names.contains("head") && (own || names.contains("commondir"));
}

}  // namespace

std::vector<std::string> RepositoryCandidates(const std::vector<std::string>& written) {
  std::set<std::string> directories;
  for (const std::string& path : written) {
    EachPart(path, [&](std::string directory, const std::string&) {
      directories.insert(std::move(directory));
    });
  }
  return {directories.begin(), directories.end()};
}

DirectoryNames ListDirectories(const std::string& top,
                               const std::vector<std::string>& directories) {
  DirectoryNames listed;
  if (directories.empty()) return listed;
  Result<Fd> root = sys::Open(top, O_RDONLY | O_DIRECTORY);
  if (!root.ok()) return listed;
  for (const std::string& directory : directories) {
    Result<Fd> fd = sys::OpenBeneath(root.value().get(), directory.empty() ? "." : directory,
                                     O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) continue;
    Result<std::vector<std::string>> names = sys::DirectoryNames(fd.value().get());
    if (names.ok()) listed[directory] = std::move(names).value();
  }
  return listed;
}

std::vector<EmbeddedRepository> FindEmbeddedRepositories(const std::vector<std::string>& written,
                                                         const DirectoryNames& before) {
  std::map<std::string, Candidate> candidates;
  for (size_t file = 0; file < written.size(); ++file) {
    EachPart(written[file], [&](const std::string& directory, std::string name) {
      candidates.try_emplace(directory, Candidate{file})
          .first->second.names.insert(std::move(name));
    });
  }
  std::vector<EmbeddedRepository> found;
  for (auto& [directory, candidate] : candidates) {
    auto known = before.find(directory);
    if (known != before.end()) {
      for (const std::string& name : known->second)
        candidate.names.insert(codec::FoldFileName(name));
    }
    if (IsRepository(candidate.names)) found.push_back({directory, candidate.file});
  }
  return found;
}

}  // namespace change
