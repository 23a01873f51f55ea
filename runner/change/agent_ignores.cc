// SPDX-License-Identifier: Apache-2.0
#include "change/agent_ignores.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "change/rules/ignore_gate.h"
#include "change/rules/ignore_rules.h"

namespace change {
namespace {

// "a/b/c" -> "a/b", "c" -> "".
std::string ParentOf(std::string_view path) {
  size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

}  // namespace

AgentIgnores::AgentIgnores(const Repository* repository) : repository_(repository) {}

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

// Gives the matcher the rules that cover what is in `directory`; false if they are not asked.
bool AgentIgnores::Load(const std::string& directory) {
  if (matcher_ && loaded_ == directory) return loaded_open_;
  if (!matcher_) {
    Result<MemoryRepository> made = MemoryRepository::Create();
    if (!made.ok()) return false;
    matcher_ = std::move(made).value();
  }
  loaded_ = directory;
  loaded_open_ = false;
  std::string text = repository_->OuterIgnoreRules();
  int64_t cost = CostOfRules(text);
  const std::string& prefix = repository_->prefix();
  for (size_t end = 0;;) {
    auto found = rules_.find(directory.substr(0, end));
    if (found != rules_.end()) {
      cost += CostOfRules(found->second.text);
      text += RulesAtTop(found->second.text, prefix + found->first + (end == 0 ? "" : "/"));
    }
    if (end >= directory.size()) break;
    end = std::min(directory.find('/', end + 1), directory.size());
  }
  if (cost > kIgnoreCostMax) return false;
  loaded_open_ = git_ignore_clear_internal_rules(matcher_->get()) == 0 &&
                 git_ignore_add_rule(matcher_->get(), text.c_str()) == 0;
  return loaded_open_;
}

bool AgentIgnores::Ignores(const std::string& path) {
  if (repository_ == nullptr) return false;
  std::string plain = path.substr(0, path.find_last_not_of('/') + 1);
  if (!Changed(plain)) return repository_->Ignores(path);
  if (spent_ > kIgnoreSpentMax || !Load(ParentOf(plain))) return false;
  int ignored = 0;
  auto began = std::chrono::steady_clock::now();
  int status =
      git_ignore_path_is_ignored(&ignored, matcher_->get(), (repository_->prefix() + path).c_str());
  spent_ += std::chrono::steady_clock::now() - began;
  return status == 0 && ignored != 0;
}

}  // namespace change
