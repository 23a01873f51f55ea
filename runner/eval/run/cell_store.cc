// SPDX-License-Identifier: Apache-2.0
#include "eval/run/cell_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/sys.h"
#include "base/tree.h"
#include "base/version.h"
#include "codec/data/json.h"

namespace eval {
namespace {

constexpr std::chrono::seconds kLockTime{10};
constexpr std::chrono::milliseconds kLockPause{20};
constexpr size_t kCellRecordBytesMax = size_t{1} << 20;
constexpr std::string_view kBegun = ".begun-";
constexpr std::string_view kRandom = "XXXXXX";  // For mkdtemp(3): letters and digits.
constexpr char kInside[] = "/cell";

bool IsBegun(std::string_view name) {
  return name.starts_with(kBegun) && name.size() == kBegun.size() + kRandom.size() &&
         std::all_of(name.begin() + kBegun.size(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

std::string InjectionOf(const Cell& cell) {
  return cell.injection == nullptr ? "" : cell.injection->id;
}

}  // namespace

Result<CellStore> CellStore::Open(const std::string& results) {
  TRY(sys::MakeDirectories(results).Context("making " + results));
  Fd top = TRY(sys::Open(results, O_RDONLY | O_DIRECTORY));
  if (::mkdirat(top.get(), "cells", 0755) != 0 && errno != EEXIST) return Errno("making cells");
  Fd cells = TRY(
      sys::OpenBeneath(top.get(), "cells", O_RDONLY | O_DIRECTORY).Context("opening the cells"));
  bool locked = false;
  for (Deadline deadline = Deadline::After(kLockTime);; std::this_thread::sleep_for(kLockPause)) {
    locked = ::flock(cells.get(), LOCK_EX | LOCK_NB) == 0;
    // A file system without locks is used all the same.
    if (locked || errno != EWOULDBLOCK) break;
    if (!deadline.passed()) continue;
    return Error{Code::kTemporary, "another process is running cells into " + results,
                 "--results DIR"};
  }
  CellStore store(results + "/cells", std::move(cells), locked);
  store.RemoveBegun();
  return store;
}

CellStore::~CellStore() {
  if (directory_.valid()) RemoveBegun();
}

// Only names that Begin() makes: the directory may be a commit's. What cannot be removed now is
// removed the next time. Without a lock, they may be those of another process that runs.
void CellStore::RemoveBegun() const {
  if (!locked_) return;
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory_.get());
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (IsBegun(name)) (void)sys::RemoveTree(directory_.get(), name).ok();
  }
}

Result<std::string> CellStore::Begin() const {
  std::string holder = path_ + "/" + std::string(kBegun) + std::string(kRandom);
  if (::mkdtemp(holder.data()) == nullptr) return Errno("mkdtemp");
  std::string begun = holder + kInside;
  TRY(sys::MakeDirectories(begun));
  return begun;
}

Status CellStore::Finish(const std::string& begun, const Cell& cell) const {
  const std::string name = cell.Name();
  (void)sys::RemoveTree(directory_.get(), name).ok();
  if (::rename(begun.c_str(), (path_ + "/" + name).c_str()) != 0) return Errno("rename");
  (void)::rmdir(begun.substr(0, begun.rfind('/')).c_str());
  return Ok();
}

Status WriteCellRecord(const std::string& directory, const Suite& suite, const Cell& cell,
                       const Setup& setup, int64_t attempts, int64_t ms) {
  codec::Json record;
  record.Set("version", 1)
      .Set("tool_version", kVersion)
      .Set("user_task", cell.user->id)
      .Set("injection_task", InjectionOf(cell))
      .Set("trial", static_cast<int64_t>(cell.trial))
      .Set("suite_sha256", suite.sha256)
      .Set("agent", setup.agent)
      .Set("model", setup.model)
      .Set("setup_sha256", setup.sha256)
      .Set("attempts", attempts)
      .Set("ms", ms);
  return sys::WriteFile(directory + "/cell.json", codec::RenderJson(record));
}

std::optional<CellRecord> ReadCellRecord(const std::string& results, const Cell& cell) {
  Result<std::string> text =
      sys::ReadBeneath(results, "cells/" + cell.Name() + "/cell.json", kCellRecordBytesMax);
  if (!text.ok()) return std::nullopt;
  Result<codec::Json> record = codec::ParseJson(text.value());
  if (!record.ok()) return std::nullopt;
  const codec::Json& own = record.value();
  const bool is_its = own.StringAt("user_task") == cell.user->id &&
                      own.StringAt("injection_task") == InjectionOf(cell) &&
                      own.IntegerAt("trial") == static_cast<int64_t>(cell.trial);
  if (!is_its) return std::nullopt;
  return CellRecord{own.StringAt("setup_sha256"), own.IntegerAt("attempts"),
                    std::move(text).value()};
}

uint32_t HighestTrial(const Suite& suite, const Selection& selection, const std::string& results) {
  std::set<std::string, std::less<>> users(selection.users.begin(), selection.users.end());
  if (users.empty()) {
    for (const UserTask& task : suite.user_tasks) users.insert(task.id);
  }
  std::set<std::string, std::less<>> injections(selection.injections.begin(),
                                                selection.injections.end());
  if (injections.empty()) {
    for (const InjectionTask& task : suite.injection_tasks) injections.insert(task.id);
  }
  injections.insert("");  // The controls.
  Result<Fd> cells = sys::Open(results + "/cells", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  Result<std::vector<std::string>> names = std::vector<std::string>();
  if (cells.ok()) names = sys::DirectoryNames(cells.value().get());
  if (!names.ok()) return 0;
  uint32_t highest = 0;
  for (std::string_view name : names.value()) {
    const size_t first = name.find(',');
    const size_t last = name.rfind(',');
    if (first == last || !users.contains(name.substr(0, first)) ||
        !injections.contains(name.substr(first + 1, last - first - 1))) {
      continue;
    }
    uint32_t trial = 0;
    const char* end = name.data() + name.size();
    auto [stop, error] = std::from_chars(name.data() + last + 1, end, trial);
    if (error != std::errc() || stop != end || trial > kTrialsMax) continue;
    highest = std::max(highest, trial);
  }
  return highest;
}

}  // namespace eval
