// SPDX-License-Identifier: Apache-2.0
#include "run/ecosystem/answer_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"

namespace run {
namespace {

constexpr size_t kEntryBytesMax = size_t{1} << 20;
// The facts that an answer depends on beyond its state (a setting that a tool has elsewhere) change
// rarely.
constexpr time_t kAgeMax = 24 * 3600;
// A file that was just written can be a second ahead of time(2): the kernel steps the clock of
// files first. Clocks are also set back a little.
constexpr time_t kAheadMax = 60;

// No other user could have written it.
bool IsOwn(const struct stat& facts) {
  return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool IsFresh(const struct stat& facts) {
  const time_t age = ::time(nullptr) - facts.st_mtime;
  return age >= -kAheadMax && age < kAgeMax;
}

std::string NameOf(std::string_view question) { return codec::Sha256Hex(question) + ".json"; }

}  // namespace

AnswerCache AnswerCache::Open() {
  const std::string cache = sys::Environment("XDG_CACHE_HOME").value_or("");
  if (cache.starts_with('/')) return OpenIn(cache + "/agentic-ci/registries");
  const std::string home = sys::Environment("HOME").value_or("");
  if (home.starts_with('/')) return OpenIn(home + "/.cache/agentic-ci/registries");
  return {};
}

AnswerCache AnswerCache::OpenIn(const std::string& directory) {
  AnswerCache cache;
  if (!sys::MakeDirectories(directory, 0700).ok()) return cache;
  Result<Fd> opened = sys::Open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat facts = {};
  if (opened.ok() && ::fstat(opened.value().get(), &facts) == 0 && IsOwn(facts)) {
    cache.directory_ = std::move(opened).value();
  }
  return cache;
}

std::optional<std::string> AnswerCache::Find(std::string_view question,
                                             std::string_view state) const {
  if (!directory_.valid()) return std::nullopt;
  Result<Fd> file = sys::OpenAt(directory_.get(), NameOf(question),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat facts = {};
  if (!file.ok() || ::fstat(file.value().get(), &facts) != 0) return std::nullopt;
  if (!S_ISREG(facts.st_mode) || !IsOwn(facts) || !IsFresh(facts)) return std::nullopt;
  Result<std::string> text = sys::ReadAll(file.value().get(), kEntryBytesMax);
  if (!text.ok()) return std::nullopt;
  Result<codec::Json> entry = codec::ParseJson(text.value());
  if (!entry.ok() || entry.value().StringAt("question") != question ||
      entry.value().StringAt("state") != state) {
    return std::nullopt;
  }
  std::string answer = entry.value().StringAt("answer");
  return answer.empty() ? std::nullopt : std::optional(std::move(answer));
}

void AnswerCache::Keep(std::string_view question, std::string_view state,
                       const std::string& answer) const {
  if (!directory_.valid() || answer.empty()) return;
  RemoveOld();
  codec::Json entry;
  entry.Set("question", std::string(question));
  entry.Set("state", std::string(state));
  entry.Set("answer", answer);
  const std::string name = NameOf(question);
  const std::string temporary = name + "." + std::to_string(::getpid());
  Result<Fd> file =
      sys::OpenAt(directory_.get(), temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (!file.ok()) return;
  const bool whole = sys::WriteAll(file.value().get(), codec::RenderJsonLine(entry)).ok();
  if (!whole || ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name.c_str())) {
    ::unlinkat(directory_.get(), temporary.c_str(), 0);
  }
}

// Answers to what is not asked any more, and what killed runs left.
void AnswerCache::RemoveOld() const {
  const std::string path = "/proc/self/fd/" + std::to_string(directory_.get());
  std::error_code failed;
  std::vector<std::string> old;
  std::filesystem::directory_iterator entries(path, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    struct stat facts = {};
    const std::string name = entries->path().filename();
    if (::fstatat(directory_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        !IsFresh(facts)) {
      old.push_back(name);
    }
  }
  for (const std::string& name : old) ::unlinkat(directory_.get(), name.c_str(), 0);
}

std::string FileState(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return path + " absent\n";
  std::string text = path;
  for (const int64_t one :
       {static_cast<int64_t>(facts.st_dev), static_cast<int64_t>(facts.st_ino),
        static_cast<int64_t>(facts.st_size), static_cast<int64_t>(facts.st_mtim.tv_sec),
        static_cast<int64_t>(facts.st_mtim.tv_nsec), static_cast<int64_t>(facts.st_ctim.tv_sec),
        static_cast<int64_t>(facts.st_ctim.tv_nsec)}) {
    text += " " + std::to_string(one);
  }
  return text + "\n";
}

}  // namespace run
