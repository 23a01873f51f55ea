// SPDX-License-Identifier: Apache-2.0
#include "run/shown/left_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/tree.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "run/shown/credential_names.h"

namespace run {
namespace {

constexpr size_t kEntriesMax = 5'000'000;
constexpr int kLooksMax = 10;            // While others move directories about.
constexpr size_t kBranchesMin = 32;      // With fewer, one thread is faster.
constexpr size_t kBranchPathMax = 2048;  // The bytes that the kernel opens in one step.
constexpr uid_t kNobody = 65534;         // Whom files seem to belong to whose owner is not known.
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr int kFilesComparedAtTop = 1000;
constexpr int kFilesComparedBelow = 2;  // The files compared in each directory.
constexpr size_t kShownPathMax = 200;
constexpr size_t kHintPathMax = 1500;
constexpr size_t kTextBytesMax = size_t{1} << 20;

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

struct Within {
  int depth = 0;
  bool credentials = false;  // True in a directory of credentials, where every file is one.
  bool git = false;          // True in the checkout's own git directory,
  bool refs = false;         // and in any, where names are those of branches.
  bool objects = false;      // True where it keeps objects: no directory there has anything else.
  bool linked = false;       // Reached by a link, whose name alone matters.
};

// A directory to look through: its path in the checkout, with a `/` at the end.
struct Branch {
  std::string path;
  Within within;
};

// The directories that are still to be looked through, by one thread or two.
class Branches {
 public:
  void Push(Branch branch) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(branch));
    ++open_;
    changed_.notify_one();
  }
  // Returns the next one, for which the caller then calls Done(); nullopt if there is no more, and
  // if `size_max` wait.
  std::optional<Branch> Next(size_t size_max = SIZE_MAX) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || open_ == 0; });
    if (waiting_.empty() || waiting_.size() >= size_max) return std::nullopt;
    Branch next = std::move(waiting_.back());
    waiting_.pop_back();
    return next;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }
  void Done() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Branch> waiting_;
  size_t open_ = 0;  // Those that wait or are being looked through.
};

// What the walks through one checkout share.
class Shared {
 public:
  Branches branches;
  std::atomic<size_t> entries{0};
  std::atomic<bool> moved{false};  // Something has gone since its directory was read.

  // Returns true the first time.
  bool IsNewLink(const std::string& facts) {
    const std::lock_guard lock(mutex_);
    return links_.insert(facts).second;
  }
  // Keeps the first one.
  void Miss(Error error) {
    const std::lock_guard lock(mutex_);
    if (!missed_) missed_ = std::move(error);
  }
  const std::optional<Error>& missed() const { return missed_; }  // When no walk goes on.

 private:
  std::mutex mutex_;
  std::set<std::string> links_;
  std::optional<Error> missed_;
};

class Walk {
 public:
  // Borrows all.
  Walk(const std::string& checkout, const std::string& report, bool notes_seen, Shared* shared)
      : checkout_(checkout), report_(report), notes_seen_(notes_seen), shared_(*shared) {
    Result<Fd> opened = sys::Open(checkout_, O_PATH | O_DIRECTORY);
    if (!opened.ok() || ::fstat(opened.value().get(), &top_) != 0) {
      shared_.Miss(opened.ok() ? Errno(checkout_) : std::move(opened).error());
      return;
    }
    checkout_fd_ = std::move(opened).value();
  }

  // Looks through branches until there is no more, or `waiting_max` wait.
  void Run(size_t waiting_max = SIZE_MAX) {
    while (std::optional<Branch> branch = shared_.branches.Next(waiting_max)) {
      LookThrough(*branch);
      shared_.branches.Done();
    }
  }

  // Adds what another walk found.
  void Add(Walk&& other) {
    if (found_.foreign.empty()) found_.foreign = std::move(other.found_.foreign);
    repositories_.merge(other.repositories_);
    credentials_.merge(other.credentials_);
    std::move(other.seen_.begin(), other.seen_.end(), std::back_inserter(seen_));
  }
  LeftFiles Take(std::vector<Seen>* seen) {
    found_.repositories.assign(repositories_.begin(), repositories_.end());
    found_.credentials.assign(credentials_.begin(), credentials_.end());
    if (seen != nullptr) *seen = std::move(seen_);
    return std::move(found_);
  }

 private:
  // What was not looked through is not shown either. `mend` is the command that mends it, but for
  // its last argument, the path; empty if none does.
  void Refuse(const std::string& path, const std::string& why, const char* mend = "rm -r ") {
    const std::string shown =
        path.empty() ? "the checkout" : codec::NeutralLine(path, kShownPathMax);
    const std::string whole = checkout_ + (path.empty() ? "" : "/" + path);
    const bool fits = !path.empty() && whole.size() <= kHintPathMax;
    shared_.Miss({Code::kRefused, shown + " cannot be looked through for credentials: " + why,
                  *mend == '\0' ? ""
                  : fits        ? mend + codec::ShellWord(whole)
                                : "--workdir DIRECTORY, without it"});
  }

  void Miss(const std::string& path, const Error& error) {
    if (sys::IsAbsent(error)) {
      shared_.moved = true;
    } else if (error.os_error == EACCES) {
      MissClosed(path);
    } else {
      Refuse(path, ::strerror(error.os_error), error.os_error == ENAMETOOLONG ? "rm -r " : "");
    }
  }

  // What its owner has closed, the agent opens: it has the owner's rights. What others closed to
  // this user is closed to the agent too.
  void MissClosed(std::string path) {
    struct stat st = top_;
    for (; !path.empty(); path.resize(path.rfind('/') == path.npos ? 0 : path.rfind('/'))) {
      if (path.ends_with('/')) path.pop_back();
      Result<Fd> place = sys::OpenBeneath(checkout_fd_.get(), path, O_PATH | O_NOFOLLOW);
      if (!place.ok() && place.error().os_error == EACCES) continue;
      if (!place.ok()) return Miss(path, place.error());
      if (::fstat(place.value().get(), &st) != 0) return Miss(path, Errno(path));
      break;
    }
    const uid_t user = ::geteuid();
    // Root's own namespace may lack the owner: then the sandbox's lacks it, too.
    if (st.st_uid == user || (user == 0 && st.st_uid != kNobody)) {
      return Refuse(path, "its mode keeps its owner out", "chmod u+rx ");
    }
    if (notes_seen_) seen_.push_back({path, ChangeOf(checkout_fd_.get(), path)});
  }

  // A link to what is not there, or is closed to this user, leads the agent to nothing either:
  // where that lies in the checkout, it is missed by its own name. So does a chain of too many.
  void MissTarget(const std::string& path, const Error& error) {
    if (error.os_error == ELOOP) return;
    struct stat st {};
    const bool nothing = sys::IsAbsent(error) || error.os_error == EACCES;
    const bool link = ::lstat((checkout_ + "/" + path).c_str(), &st) == 0 && S_ISLNK(st.st_mode);
    if (!nothing || !link) Miss(path, error);
  }

  void LookThrough(const Branch& branch) {
    const std::string path = branch.path.empty() ? "." : branch.path;
    LookThrough(sys::OpenBeneath(checkout_fd_.get(), path, O_RDONLY | O_DIRECTORY), branch.path,
                branch.within);
  }

  // A directory that is looked through.
  struct Here {
    int fd;
    const std::string& path;  // In the checkout, with a `/` at the end.
    Within within;
    int files_left;  // Those whose owners are still compared.
    std::vector<std::string> below = {};
    std::vector<std::string> of_git = {};  // Names of credentials where this is git's.
    // What makes it a git directory; objects and refs may be links, as the tool `repo` makes them.
    bool has_head = false, has_objects = false, has_refs = false;
  };

  void LookThrough(Result<Fd> opened, const std::string& path, Within within) {
    if (!opened.ok()) return Miss(path, opened.error());
    Here here{opened.value().get(), path, within,
              path.empty() ? kFilesComparedAtTop : kFilesComparedBelow};
    if (notes_seen_) seen_.push_back({path + ".", ChangeOf(here.fd, ".")});
    Directory stream(::fdopendir(here.fd), ::closedir);
    if (!stream) return Miss(path, Errno("fdopendir"));
    (void)opened.value().Take();
    const size_t before = shared_.entries;
    size_t looked_at = before;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
      if (++looked_at > kEntriesMax) break;
      LookAt(*entry, &here);
      errno = 0;
    }
    if (errno != 0) Miss(path, Errno("readdir"));
    if ((shared_.entries += looked_at - before) > kEntriesMax) {
      return Refuse("", "it has more than " + std::to_string(kEntriesMax) + " files");
    }
    GoOn(here);
  }

  void LookAt(const dirent& entry, Here* here) {
    const std::string_view of = entry.d_name;
    if (of == "." || of == "..") return;
    const Within& within = here->within;
    const std::string& path = here->path;
    const bool is_directory = IsDirectory(here->fd, entry);
    here->has_head |= of == "HEAD" && !is_directory;  // Submodules may have all of these names.
    here->has_objects |= of == "objects";
    here->has_refs |= of == "refs";
    const bool may_lead = within.credentials ? entry.d_type == DT_LNK || entry.d_type == DT_UNKNOWN
                                             : MayNameDirectory(of);
    if (!is_directory && !within.refs && may_lead) {
      LookBehind(path + std::string(of), within);
    }
    if (is_directory && report_.ends_with(of) &&
        report_ == checkout_ + "/" + path + std::string(of)) {
      return;
    }
    if (is_directory || --here->files_left >= 0) CompareOwner(here->fd, entry, path);
    if (is_directory) return (void)here->below.emplace_back(of);
    const bool may = within.credentials || MayName(of);
    const bool of_git = MayNameInGit(of);
    if (notes_seen_ && (may || of_git || IsGitConfig(of))) {
      seen_.push_back({path + std::string(of), ChangeOf(here->fd, entry.d_name)});
    }
    if (may && !within.refs) ConsiderFile(path + std::string(of), within.credentials);
    if (of_git) here->of_git.emplace_back(of);
  }

  // Goes on below a directory, once all of its names are known.
  void GoOn(const Here& here) {
    const std::string& path = here.path;
    const Within& within = here.within;
    const bool repository = here.has_head && here.has_objects && here.has_refs;
    const bool bare = repository && !within.git && !within.linked;
    if (bare) repositories_.insert(checkout_ + "/" + path.substr(0, path.rfind('/')));
    const bool of_git = within.git || bare || ("/" + path).find("/.git/") != path.npos;
    if (of_git && !within.refs) {
      for (const std::string& name : here.of_git) ConsiderGitFile(path, name);
    }
    for (const std::string& next : here.below) {
      if (within.objects || (bare && next == "objects")) continue;
      Within deeper = within;
      ++deeper.depth;
      deeper.git |= path.empty() && next == ".git";
      deeper.objects = within.git && repository && next == "objects";
      deeper.refs |= of_git && (next == "refs" || next == "logs") && here.has_head;
      if (!deeper.git && !deeper.linked && next == ".git")
        repositories_.insert(checkout_ + "/" + path + next);
      deeper.credentials |= IsCredentialDirectory(path + next);
      // Behind a link, other names are looked at where they really are.
      if (deeper.linked && !deeper.credentials && !MayNameDirectory(next)) continue;
      std::string path_below = path + next + "/";
      if (deeper.depth > sys::kTreeDepthMax) {
        return Refuse(path + next,
                      "it lies deeper than " + std::to_string(sys::kTreeDepthMax) + " directories");
      }
      if (!deeper.linked && path_below.size() < kBranchPathMax) {
        shared_.branches.Push({std::move(path_below), deeper});
      } else {
        LookThrough(sys::OpenAt(here.fd, next, kDirectory), path_below, deeper);
      }
    }
  }

  // Looks through the directory that the link `path` leads to, for what it has by this name.
  void LookBehind(const std::string& path, Within within) {
    Result<std::string> real = sys::RealPath(checkout_ + "/" + path);
    if (!real.ok()) return MissTarget(path, real.error());
    within.linked = true;
    within.git = false;
    within.credentials |= IsCredentialDirectory(path);
    const std::string inside = real.value() + "/";
    if (!inside.starts_with(checkout_ + "/")) return;
    // Neither the checkout itself is a directory of credentials, nor is git's.
    const bool whole = inside.size() == checkout_.size() + 1;
    if (within.credentials && (whole || inside.starts_with(checkout_ + "/.git/"))) return;
    struct stat st {};
    if (::stat(real.value().c_str(), &st) != 0) return MissTarget(path, Errno(path));
    if (!S_ISDIR(st.st_mode)) return;
    // What is found by a name depends on the last of its parts alone, also in a circle of links.
    if (!shared_.IsNewLink(inside + "/" + (within.credentials ? "." : PartsThatCount(path))))
      return;
    LookThrough(sys::Open(real.value(), kDirectory), path + "/", within);
  }

  void CompareOwner(int directory, const dirent& entry, const std::string& path) {
    if (!found_.foreign.empty() || path == ".git/objects/") return;
    struct stat st {};
    if (::fstatat(directory, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (st.st_uid == top_.st_uid && st.st_gid == top_.st_gid) return;
    found_.foreign = path + entry.d_name + " belongs to " + std::to_string(st.st_uid) + ":" +
                     std::to_string(st.st_gid);
  }

  // Returns true also if it cannot be determined.
  static bool IsDirectory(int directory, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    struct stat st {};
    return ::fstatat(directory, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode);
  }

  // `path` is relative to the checkout.
  void ConsiderFile(const std::string& path, bool of_credentials) {
    const NamedCredential named = of_credentials ? NamedCredential::kYes : JudgeName(path);
    if (named != NamedCredential::kNo) Withhold(path, named == NamedCredential::kIfSecret);
  }

  // `directory` is one of git's.
  void ConsiderGitFile(const std::string& directory, const std::string& name) {
    Withhold(directory + name, name != "credentials");
  }

  // Adds the file that `path` is or leads to; `if_secret`: only if it seems to hold a credential.
  void Withhold(const std::string& path, bool if_secret) {
    Result<std::string> real = sys::RealPath(checkout_ + "/" + path);
    if (!real.ok()) return MissTarget(path, real.error());
    if (!real.value().starts_with(checkout_ + "/")) return;
    struct stat st {};
    if (::stat(real.value().c_str(), &st) != 0) return Miss(path, Errno(path));
    if (!S_ISREG(st.st_mode)) return;
    std::string inside = real.value().substr(checkout_.size() + 1);
    if (if_secret && !HasCredential(inside)) return;
    credentials_.insert(std::move(inside));
  }

  // Returns true also if it cannot be determined.
  bool HasCredential(const std::string& path) const {
    Result<std::string> text = sys::ReadBeneath(checkout_, path, kTextBytesMax);
    return !text.ok() || SeemsSecret(text.value());
  }

  const std::string& checkout_;
  const std::string& report_;
  const bool notes_seen_;
  Shared& shared_;
  Fd checkout_fd_;
  struct stat top_ {};
  std::vector<Seen> seen_;
  std::set<std::string> repositories_;
  std::set<std::string> credentials_;
  LeftFiles found_;
};

}  // namespace

timespec ChangeOf(int checkout, const std::string& path) {
  constexpr int64_t kTickMs = 20;  // More than a tick of any clock that stamps files.
  struct stat st {};
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  if (::fstatat(checkout, path.c_str(), &st, 0) != 0) return {};
  const int64_t age_ms =
      (now.tv_sec - st.st_ctim.tv_sec) * 1000 + (now.tv_nsec - st.st_ctim.tv_nsec) / 1'000'000;
  return age_ms >= 0 && age_ms < kTickMs ? timespec{} : st.st_ctim;
}

Result<LeftFiles> FindLeftFiles(const std::string& checkout, const std::string& report,
                                std::vector<Seen>* seen, bool is_git) {
  for (int look = 0; look < kLooksMax; ++look) {
    Shared shared;
    Walk first(checkout, report, seen != nullptr, &shared);
    if (shared.missed()) return *shared.missed();
    shared.branches.Push({"", {.git = is_git}});
    first.Run(kBranchesMin);
    if (!shared.branches.empty()) {
      Walk second(checkout, report, seen != nullptr, &shared);
      {
        const sys::BackgroundTask beside([&] { second.Run(); });
        first.Run();
      }
      first.Add(std::move(second));
    }
    if (shared.missed()) return *shared.missed();
    if (!shared.moved) return first.Take(seen);
  }
  return Error{Code::kTemporary, "the checkout changes while it is looked through for credentials"};
}

std::vector<sandbox::WorkspaceFile> WithholdFiles(const change::Repository* repository,
                                                  const std::string& checkout,
                                                  const std::vector<std::string>& paths) {
  std::vector<sandbox::WorkspaceFile> files;
  for (const std::string& path : paths) {
    std::optional<std::string> committed;
    if (repository != nullptr && !repository->unborn()) {
      Result<std::optional<std::string>> text =
          repository->ReadAtRef("HEAD", repository->prefix() + path, kTextBytesMax);
      if (text.ok()) committed = std::move(text).value();
    }
    Result<std::string> now = sys::ReadBeneath(checkout, path, kTextBytesMax);
    if (!committed) {
      files.push_back({path, "", true});
    } else if (!now.ok() || now.value() != *committed) {
      files.push_back({path, *std::move(committed)});
    }
  }
  return files;
}

}  // namespace run
