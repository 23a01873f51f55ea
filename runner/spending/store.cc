// SPDX-License-Identifier: Apache-2.0
#include "spending/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/sys.h"
#include "change/tree_edit.h"

namespace spending {
namespace {

constexpr mode_t kOwnFileMode = 0600;
constexpr std::chrono::milliseconds kBetweenLocks{10};
constexpr std::chrono::milliseconds kBetweenCommits{200};
constexpr int kCommitRoundsMax = 50;
// A branch whose tip stays is not refused for another commit's sake: a rule protects it, say. Some
// forges tell a new tip a little later than they go by it.
constexpr int kSameTipMax = 5;
constexpr int kFileMode = 0100644;

// Forges start no pipeline for a commit that says so. No other word of it is anybody's.
constexpr char kMessage[] = "Note what runs of agentic-ci have spent\n\n[skip ci]\n";

Result<Fd> Lock(const std::string& path, Deadline deadline) {
  Fd lock = TRY(sys::Open(path, O_RDWR | O_CREAT | O_NOFOLLOW, kOwnFileMode));
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Errno("flock " + path);
    if (deadline.passed()) return Error{Code::kTemporary, path + " is locked by another process"};
    std::this_thread::sleep_for(kBetweenLocks);
  }
  return lock;
}

// By renaming: who reads finds the old one or the new one.
Status Replace(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  const Fd file = TRY(sys::Open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kOwnFileMode));
  TRY(sys::WriteAll(file.get(), text));
  if (::fsync(file.get()) != 0) return Errno("fsync " + draft);
  return ::rename(draft.c_str(), path.c_str()) == 0 ? Ok() : Errno("rename " + draft);
}

Result<Ledger> Parse(const std::string& text, const std::string& where) {
  Result<Ledger> ledger = ParseLedger(text);
  if (ledger.ok()) return ledger;
  return Error{Code::kInvalid, where + ": " + ledger.error().what};
}

}  // namespace

Result<Ledger> FileStore::Read(Deadline) {
  Result<std::string> text = sys::ReadFile(path_, kLedgerBytesMax);
  if (text.ok()) return Parse(text.value(), path_);
  // People make the directory: a missing one is a mistake.
  const std::string directory = path_.substr(0, path_.rfind('/') + 1);
  const bool absent =
      sys::IsAbsent(text.error()) && sys::Exists(directory.empty() ? "." : directory);
  if (absent) return Ledger();
  return std::move(text).error();
}

Status FileStore::Change(const Edit& edit, Deadline deadline) {
  const Fd lock = TRY(Lock(path_ + ".lock", deadline));
  Ledger ledger = TRY(Read(deadline));
  if (!edit(&ledger)) return Ok();
  const std::string text = RenderLedger(ledger);
  if (text.size() > kLedgerBytesMax) return Error{Code::kInvalid, path_ + " is full"};
  return Replace(path_, text);
}

Result<BranchStore::Seen> BranchStore::Look(Deadline deadline) {
  Seen seen;
  seen.tip = TRY(forge_.branches().ReadTip(kBranch, deadline)).value_or("");
  if (seen.tip.empty()) return seen;
  std::optional<std::string> text = TRY(forge_.ReadFile(kFile, seen.tip, deadline));
  if (!text) return seen;
  seen.text = *std::move(text);
  seen.ledger = TRY(Parse(seen.text, std::string(kFile) + " of the branch " + kBranch));
  return seen;
}

Result<Ledger> BranchStore::Read(Deadline deadline) { return TRY(Look(deadline)).ledger; }

Status BranchStore::Commit(const Seen& seen, const std::string& text, Deadline deadline) {
  const std::string on = seen.tip.empty() ? TRY(root_()) : seen.tip;
  std::vector<forge::CommitRecord> history = TRY(forge_.branches().ReadHistory(on, 1, deadline));
  if (history.empty()) return Error{Code::kTemporary, "the forge does not have the commit " + on};
  forge::CommitRequest request;
  request.branch = kBranch;
  request.tip = seen.tip;
  request.on = std::move(history.front());
  request.message = kMessage;
  forge::FileWrite file;
  file.path = kFile;
  file.bytes = text;
  file.mode = kFileMode;
  if (!seen.text.empty()) {
    file.old_id = TRY(change::BlobId(seen.text));
    file.old_mode = kFileMode;
  }
  request.files.push_back(std::move(file));
  TRY(forge_.branches().Commit(request, deadline));
  return Ok();
}

Status BranchStore::Change(const Edit& edit, Deadline deadline) {
  std::string last_tip;
  int same = 0;
  for (int round = 1;; ++round) {
    Seen seen = TRY(Look(deadline));
    if (!edit(&seen.ledger)) return Ok();
    const std::string text = RenderLedger(seen.ledger);
    if (text.size() > kLedgerBytesMax) {
      return Error{Code::kInvalid, std::string(kFile) + " of the branch " + kBranch + " is full"};
    }
    Status made = Commit(seen, text, deadline);
    if (made.ok() || !forge_.branches().moved()) return made;
    same = round > 1 && seen.tip == last_tip ? same + 1 : 0;
    last_tip = seen.tip;
    if (same == kSameTipMax) return made;
    if (round == kCommitRoundsMax || deadline.passed()) {
      return Error{Code::kTemporary,
                   "the branch " + std::string(kBranch) + " keeps changing: " + made.error().what};
    }
    std::this_thread::sleep_for(kBetweenCommits);
  }
}

}  // namespace spending
