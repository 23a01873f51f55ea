// SPDX-License-Identifier: Apache-2.0
#include "advise/diff_system.h"

#include <algorithm>

#include "base/join.h"

namespace advise {
namespace {

using Texts = std::vector<std::string>;

Difference About(std::string subject, std::string what, codec::Position at = {}) {
  return {std::move(subject), std::move(what), {}, at, {}};
}

// Is `path` one of these, or below one?
bool IsBelow(const Texts& folders, const std::string& path) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    size_t end = folder.find_last_not_of('/') + 1;  // "/" is every path.
    return path.compare(0, end, folder, 0, end) == 0 &&
           (path.size() <= end || path[end] == '/' || end == 0);
  });
}

void ComparePaths(const policy::FilesystemPolicy& from, const policy::FilesystemPolicy& to,
                  std::vector<Difference>* only) {
  for (const std::string& path : to.read_write) {
    if (!IsBelow(from.read_write, path)) only->push_back(About(path, "writing"));
  }
  for (const std::string& path : to.read_only) {
    bool read = IsBelow(from.read_only, path) || IsBelow(from.read_write, path);
    if (!read) only->push_back(About(path, "reading"));
  }
  if (to.include_workdir && !from.include_workdir) {
    only->push_back(About("the workspace", "writing"));
  }
}

std::string MiddlewareText(const policy::Middleware& middleware) {
  std::string text = "redacts " + Join(middleware.include);
  if (!middleware.exclude.empty()) text += " but " + Join(middleware.exclude);
  if (middleware.fail_open) text += ", and passes what it cannot inspect";
  return text;
}

void CompareMiddlewares(const policy::Policy& from, const policy::Policy& to, bool after,
                        std::vector<Difference>* changes) {
  for (const policy::Middleware& middleware : to.middlewares) {
    std::string text = MiddlewareText(middleware);
    bool known =
        std::any_of(from.middlewares.begin(), from.middlewares.end(),
                    [&](const policy::Middleware& other) { return MiddlewareText(other) == text; });
    if (known) continue;
    changes->push_back(About("middleware " + middleware.name,
                             (after ? "now " : "no longer ") + text, middleware.at));
  }
}

void CompareHostedTools(const policy::Policy& from, const policy::Policy& to,
                        std::vector<Difference>* only) {
  for (const policy::HostedAllowance& entry : to.hosted_tools) {
    const bool known = std::ranges::find(from.hosted_tools, entry) != from.hosted_tools.end();
    if (!known) only->push_back(About("hosted_tools", policy::RenderHostedTools({entry})));
  }
}

void CompareAfterUntrusted(const policy::Policy& now, const policy::Policy& next,
                           std::vector<Difference>* changes) {
  const std::string before = policy::RenderAfterUntrusted(now.after_untrusted);
  const std::string after = policy::RenderAfterUntrusted(next.after_untrusted);
  if (before == after) return;
  changes->push_back(About("after_untrusted", "now " + after + ", before " + before));
}

void CompareUser(std::string_view key, const std::optional<std::string>& now,
                 const std::optional<std::string>& next, std::vector<Difference>* changes) {
  if (now == next) return;
  changes->push_back(About("process", "now " + std::string(key) + " " +
                                          next.value_or("of the image") + ", before " +
                                          now.value_or("of the image")));
}

}  // namespace

void CompareSystems(const policy::Policy& now, const policy::Policy& next,
                    PolicyDifference* difference) {
  ComparePaths(now.filesystem, next.filesystem, &difference->opens);
  ComparePaths(next.filesystem, now.filesystem, &difference->closes);
  if (now.landlock != next.landlock) {
    bool hard = next.landlock == policy::LandlockMode::kHardRequirement;
    difference->changes.push_back(
        About("landlock", hard ? "now hard_requirement" : "no longer hard_requirement"));
  }
  CompareUser("run_as_user", now.process.run_as_user, next.process.run_as_user,
              &difference->changes);
  CompareUser("run_as_group", now.process.run_as_group, next.process.run_as_group,
              &difference->changes);
  CompareAfterUntrusted(now, next, &difference->changes);
  CompareHostedTools(now, next, &difference->opens);
  CompareHostedTools(next, now, &difference->closes);
  CompareMiddlewares(now, next, true, &difference->changes);
  CompareMiddlewares(next, now, false, &difference->changes);
}

}  // namespace advise
