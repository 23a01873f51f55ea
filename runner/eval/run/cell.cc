// SPDX-License-Identifier: Apache-2.0
#include "eval/run/cell.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "codec/text/nearest.h"
#include "eval/grade/verdict.h"
#include "eval/suite/placeholder.h"

namespace eval {
namespace {

// The tasks of `all` whose ids are in `ids`; all of them when it is empty.
template <typename Task>
Result<std::vector<const Task*>> Select(const std::vector<Task>& all,
                                        const std::vector<std::string>& ids,
                                        std::string_view what) {
  std::vector<const Task*> tasks;
  std::vector<std::string_view> names;
  for (const Task& task : all) {
    names.push_back(task.id);
    if (ids.empty()) tasks.push_back(&task);
  }
  for (const std::string& id : ids) {
    auto found =
        std::find_if(all.begin(), all.end(), [&](const Task& one) { return one.id == id; });
    if (found == all.end()) {
      return Error{Code::kUsage, "the suite has no " + std::string(what) + " '" + id + "'",
                   codec::NearestName(id, names)};
    }
    if (std::find(tasks.begin(), tasks.end(), &*found) == tasks.end()) tasks.push_back(&*found);
  }
  return tasks;
}

void CollectTexts(const codec::Json& tree, std::vector<std::string>* texts) {
  if (tree.string() != nullptr) texts->push_back(*tree.string());
  if (tree.array() != nullptr) {
    for (const codec::Json& one : *tree.array()) CollectTexts(one, texts);
  }
  if (tree.object() != nullptr) {
    for (const auto& [name, one] : *tree.object()) CollectTexts(one, texts);
  }
}

}  // namespace

std::string Cell::Name() const {
  return user->id + "," + (injection == nullptr ? "" : injection->id) + "," + std::to_string(trial);
}

bool ParseShard(std::string_view text, Selection* selection) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return false;
  const char* middle = text.data() + slash;
  const char* end = text.data() + text.size();
  const auto [first_end, first_error] = std::from_chars(text.data(), middle, selection->shard);
  const auto [last_end, last_error] = std::from_chars(middle + 1, end, selection->shards);
  return first_end == middle && last_end == end && first_error == std::errc() &&
         last_error == std::errc() && selection->shard >= 1 &&
         selection->shard <= selection->shards && selection->shards <= kShardsMax;
}

Result<std::vector<Cell>> PlanCells(const Suite& suite, const Selection& selection) {
  std::vector<const UserTask*> users = TRY(Select(suite.user_tasks, selection.users, "user task"));
  std::vector<const InjectionTask*> injections =
      TRY(Select(suite.injection_tasks, selection.injections, "injection task"));
  injections.insert(injections.begin(), nullptr);
  uint32_t trials = selection.trials > 0 ? selection.trials : suite.trials;
  const uint64_t all = uint64_t{trials} * users.size() * injections.size();
  if (all > kCellsMax) {
    return Error{Code::kInvalid,
                 suite.file + ": " + std::to_string(all) + " cells, and at most " +
                     std::to_string(kCellsMax) + " are run together",
                 "--trials 1, --user-task ID"};
  }
  std::vector<Cell> cells;
  uint32_t number = 0;
  for (uint32_t trial = 1; trial <= trials; ++trial) {
    for (const UserTask* user : users) {
      for (const InjectionTask* injection : injections) {
        if (number++ % selection.shards + 1 != selection.shard) continue;
        cells.push_back({user, injection, trial});
      }
    }
  }
  return cells;
}

std::vector<std::string> MarkersOfCell(const Suite& suite, const Cell& cell) {
  if (cell.injection == nullptr) return {};
  Rendered benign = Render(suite, *cell.user, nullptr);
  std::vector<std::string> texts = {benign.prompt};
  CollectTexts(benign.state, &texts);
  for (const SeedFile& file : benign.files) texts.push_back(file.content);
  for (const SeedCommit& commit : benign.commits) texts.push_back(commit.message);
  std::vector<std::string> payloads;
  for (const Probe& probe : cell.injection->probes) payloads.push_back(probe.payload);
  return MarkersOf(payloads, texts);
}

std::vector<std::string> SentTextsOf(const Suite& suite) {
  std::vector<std::string> texts;
  for (const UserTask& task : suite.user_tasks) CollectSentTexts(task.utility, &texts);
  for (const InjectionTask& task : suite.injection_tasks) CollectSentTexts(task.security, &texts);
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

bool HasPayloadInPrompt(const Cell& cell) {
  if (cell.injection == nullptr) return false;
  for (const std::string& name : PlaceholdersIn(cell.user->prompt)) {
    if (name.starts_with(cell.injection->of + ":")) return true;
  }
  return false;
}

}  // namespace eval
