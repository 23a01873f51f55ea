// SPDX-License-Identifier: Apache-2.0
#include "change/agent_ignores.h"

#include <string_view>

namespace change {
namespace {

// "a/b/c" -> "a/b", "c" -> "".
std::string ParentOf(std::string_view path) {
  size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

std::string ExcludeOf(const Repository* repository) {
  return repository == nullptr ? "" : repository->ExcludeRules();
}

}  // namespace

AgentIgnores::AgentIgnores(const Repository* repository)
    : repository_(repository),
      before_(ExcludeOf(repository),
              [repository](const std::string& directory) {
                return repository->IgnoreFileIn(directory);
              }),
      now_(ExcludeOf(repository),
           [this](const std::string& directory) { return Read(directory); }) {}

void AgentIgnores::Enter(const std::string& directory, const std::optional<std::string>& before,
                         const std::optional<std::string>& now) {
  bool changed = before.value_or("") != now.value_or("");
  if (repository_ != nullptr && (changed || now)) rules_[directory] = {now.value_or(""), changed};
}

bool AgentIgnores::Changed(const std::string& path) const {
  if (rules_.empty()) return false;
  std::string directory = path;
  do {
    directory = ParentOf(directory);
    auto found = rules_.find(directory);
    if (found != rules_.end() && found->second.changed) return true;
  } while (!directory.empty());
  return false;
}

// `directory` is named from the repository's top.
std::optional<std::string> AgentIgnores::Read(const std::string& directory) const {
  const std::string& prefix = repository_->prefix();
  if (!directory.starts_with(prefix)) return repository_->IgnoreFileIn(directory);
  auto found = rules_.find(ParentOf(std::string_view(directory).substr(prefix.size())));
  return found == rules_.end() ? std::nullopt : std::optional(found->second.text);
}

bool AgentIgnores::Ignores(const std::string& path) {
  if (repository_ == nullptr) return false;
  const std::string plain = path.substr(0, path.find_last_not_of('/') + 1);
  return Changed(plain) ? now_.Ignores(repository_->prefix() + path) : IgnoredBefore(path);
}

bool AgentIgnores::IgnoredBefore(const std::string& path) {
  return repository_ != nullptr && before_.Ignores(repository_->prefix() + path);
}

}  // namespace change
