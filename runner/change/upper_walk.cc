// SPDX-License-Identifier: Apache-2.0
#include "change/upper_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "change/agent_ignores.h"
#include "change/protected_path.h"
#include "change/rules/ignore_file.h"
#include "change/submodules.h"
#include "change/tree_file.h"

namespace change {
namespace {

// The bound on the paths that wait to be listed; a hostile tree has long ones.
constexpr size_t kPendingBytesMax = 32 << 20;
// Every level is walked anew for every directory in it; no source tree is half as deep.
constexpr int kDepthMax = 128;
constexpr int64_t kTopEntriesMax = 1'000'000;

// A directory that waits to be listed.
struct Pending {
  std::string path;
  enum class Layer {
    kMerged,  // In the upper, over an entry of the lower at the same path.
    kHiding,  // In the upper, and nothing of the lower shines through.
    kGone,    // In the lower only, deleted.
  } layer;
  bool touched = false;  // True in a copy if it, or a directory above it, was changed or moved.
};

class Walk {
 public:
  Walk(WalkedLayers layers, const Repository* repository, int64_t entries_max,
       const UpperVisitor& visitor)
      : upper_(layers.upper),
        copy_(layers.copy),
        lower_(layers.lower),
        meanwhile_(layers.meanwhile),
        added_(layers.added),
        with_git_(layers.with_git),
        ignored_(layers.part == Part::kIgnored),
        repository_(repository),
        entries_left_(entries_max),
        visitor_(visitor),
        submodules_(layers.lower),
        rules_(repository) {}

  Status Run() {
    has_gitmodules_ = ExistsIn(lower_, ".gitmodules");
    Push({"", upper_ < 0         ? Pending::Layer::kGone
              : copy_ != nullptr ? Pending::Layer::kHiding
                                 : Pending::Layer::kMerged});
    while (!pending_.empty()) {
      Pending next = std::move(pending_.back());
      pending_.pop_back();
      pending_bytes_ -= next.path.size();
      if (next.layer == Pending::Layer::kGone) {
        TRY(VisitGone(next.path));
      } else {
        TRY(VisitUpper(next));
      }
    }
    return Ok();
  }

 private:
  void Push(Pending item) {
    if (pending_bytes_ + item.path.size() > kPendingBytesMax) {
      LeaveOut(item.path, "too many directories", true, true);
      return;
    }
    pending_bytes_ += item.path.size();
    pending_.push_back(std::move(item));
  }

  // Names a path that is left out; in a walk of ignored files, only one that the rules ignore.
  void LeaveOut(const std::string& path, const std::string& reason, bool lost,
                bool directory = false) {
    if (ignored_ && CoverOf(path, directory) != Cover::kAlways) return;
    visitor_.left_out(path, reason, lost);
  }

  // Names of `directory`, counted; empty if the path had to be left out.
  std::vector<std::string> Names(int directory, const std::string& path) {
    Result<std::vector<std::string>> names = ListNames(directory, entries_left_);
    if (!names.ok()) {
      LeaveOut(path, names.error().what, true, true);
      return {};
    }
    entries_left_ -= static_cast<int64_t>(names.value().size());
    return std::move(names).value();
  }

  // Returns whether the copy's file was changed, or the directory moved, since it was made.
  bool Touched(const struct stat& st) const {
    return copy_ == nullptr || std::pair(st.st_ctim.tv_sec, st.st_ctim.tv_nsec) >=
                                   std::pair(copy_->made.tv_sec, copy_->made.tv_nsec);
  }

  // Returns whether a copy of the lower layer has nothing at `path` of what is there: another file
  // system is mounted there, or it was left out.
  bool NotCopied(int lower_directory, const std::string& path, const std::string& name) const {
    if (copy_ == nullptr) return false;
    const std::vector<std::string>& left = copy_->left_out;
    if (std::find(left.begin(), left.end(), path) != left.end()) return true;
    if (lower_directory < 0) return false;
    Result<Fd> same = sys::OpenUnmounted(lower_directory, name, O_PATH | O_NOFOLLOW);
    return !same.ok() && same.error().os_error == EXDEV;
  }

  // True for a file that the runner cannot read, and so did not copy: it was not removed.
  bool NeverReadable(int lower_directory, const std::string& name) const {
    return copy_ != nullptr && ::faccessat(lower_directory, name.c_str(), R_OK, AT_EACCESS) != 0 &&
           errno == EACCES;
  }

  // Returns true, after reporting why, if the path is not to be looked at. `own` is true for a path
  // of the agent's, not of the lower layer.
  bool Skip(const std::string& path, const std::string& name, bool own) {
    if (!with_git_ && NamesGitDirectory(name)) {
      bool top = path == ".git";
      if (!top && own) LeaveOut(path, "belongs to git", false);
      return true;
    }
    bool deep = std::count(path.begin(), path.end(), '/') >= kDepthMax;
    if (!deep && (with_git_ || ValidPath(path))) return false;
    LeaveOut(path.substr(0, 200) + "...", deep ? "it is nested too deeply" : "its path is too long",
             true);
    return true;
  }

  // The cover of an untracked path by the ignore rules.
  enum class Cover {
    kNone,
    kAlways,  // Before the run, too.
    kAdded,   // Only since the agent changed the rules.
  };

  bool Tracked(const std::string& path, bool directory) const {
    if (submodules_.Holds(path)) return submodules_.Tracks(path);
    return repository_->Tracks(path) || (directory && repository_->TracksBeneath(path));
  }

  // Returns whether the agent added the path to its index, or anything beneath it: no rule covers
  // that.
  bool Added(const std::string& path, bool directory) const {
    if (added_ == nullptr) return false;
    if (!directory) return added_->contains(path);
    auto beneath = added_->lower_bound(path + "/");
    return beneath != added_->end() && beneath->starts_with(path + "/");
  }

  // Returns the cover by the rules as the agent left them.
  Cover CoverOf(const std::string& path, bool directory) {
    const std::string asked = directory ? path + "/" : path;
    if (repository_ == nullptr || !rules_.Ignores(asked) || Tracked(path, directory) ||
        Added(path, directory)) {
      return Cover::kNone;
    }
    return !rules_.Changed(path) || rules_.IgnoredBefore(asked) ? Cover::kAlways : Cover::kAdded;
  }

  // Returns whether the rules of the checkout ignore the path: they say whether its loss matters.
  bool WasIgnored(const std::string& path, bool directory) {
    if (repository_ == nullptr || Tracked(path, directory)) return false;  // Rules take longer.
    const bool ignored = rules_.IgnoredBefore(directory ? path + "/" : path);
    if (ignored) visitor_.ignored(path);
    return ignored;
  }

  // Returns true if a new file or directory is left out, as `git status` does. Files that were in
  // the checkout before the run are captured in any case: no rule of the agent's can hide it.
  bool LeftToRules(const std::string& path, bool directory, bool is_new, bool counts) {
    if (ignored_ && directory) return false;  // The rules are asked about each file in it.
    Cover cover = CoverOf(path, directory);
    if (ignored_) return cover != Cover::kAlways;
    if (cover == Cover::kNone || (cover == Cover::kAdded && !is_new)) return false;
    if (cover == Cover::kAdded) {
      LeaveOut(path, "ignored by a rule that the agent added", false);
    } else if (counts) {
      visitor_.ignored(path);
    }
    return true;
  }

  // The .gitignore in `directory`; nullopt if git would read none.
  static std::optional<std::string> ReadRules(int directory, Unreadable unreadable) {
    Result<TreeFile> file = TreeFile::Open(directory, ".gitignore", unreadable);
    if (!file.ok() || !S_ISREG(static_cast<mode_t>(file.value().mode()))) return std::nullopt;
    Result<std::string> rules = file.value().Read(kIgnoreBytesMax);
    if (!rules.ok()) return std::nullopt;
    return std::move(rules).value();
  }

  // `shows_lower`: what the upper layer does not have is as in the lower one.
  void EnterRules(const std::string& path, int upper_directory, int lower_directory,
                  bool shows_lower) {
    bool in_upper = ExistsIn(upper_directory, ".gitignore");
    bool in_lower = ExistsIn(lower_directory, ".gitignore");
    if (!in_upper && !in_lower) return;
    std::optional<std::string> before;
    if (in_lower) before = ReadRules(lower_directory, Unreadable::kFail);
    std::optional<std::string> now;
    if (in_upper) {
      now = ReadRules(upper_directory, Unreadable::kMakeReadable);
    } else if (shows_lower) {
      now = before;
    }
    rules_.Enter(path, before, now);
  }

  // Notes a repository of its own that the lower layer has at `path`, or that belongs there by the
  // index: what lies beneath is not this repository's. `lower_directory` is -1 if the lower has no
  // directory there.
  void NoteSubmodule(int lower_directory, const std::string& path) {
    if (path.empty() || with_git_) return;
    bool own = ExistsIn(lower_directory, ".git");
    if (!own && has_gitmodules_ && repository_ != nullptr) own = repository_->TracksSubmodule(path);
    if (!own) return;
    submodules_.Add(path);
    visitor_.submodule(path);
  }

  // Returns true, after saying so, if the agent checked out a submodule of which the checkout has
  // nothing, as builds need it: what it did there is no half of a change.
  bool LeaveOutFilled(int upper_directory, int lower_directory, const std::string& path) {
    if (!submodules_.IsTop(path) || !ExistsIn(upper_directory, ".git")) return false;
    if (lower_directory >= 0 && !Names(lower_directory, path).empty()) return false;
    LeaveOut(path, "a submodule that was not checked out before", false);
    return true;
  }

  static bool ExistsIn(int directory, const char* name) {
    struct stat st {};
    return directory >= 0 && ::fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  }

  Status VisitGone(const std::string& path) {
    if (!path.empty() && WasIgnored(path, true)) return Ok();
    Result<Fd> directory = OpenDirectory(lower_, path, Unreadable::kFail);
    if (!directory.ok()) {
      LeaveOut(path, "cannot be read in the checkout", true);
      return Ok();
    }
    int fd = directory.value().get();
    struct stat st {};
    const bool known =
        meanwhile_ == nullptr || (meanwhile_->given != nullptr && meanwhile_->given->whole);
    if (!known && ::fstat(fd, &st) == 0 && meanwhile_->Changed(path, st)) {
      if (meanwhile_->Made(path, fd)) {
        LeaveOut(path, kChangedMeanwhile, false);
      } else {
        visitor_.gone_meanwhile(path);
      }
      return Ok();
    }
    NoteSubmodule(fd, path);
    for (const std::string& name : Names(fd, path)) TRY(HideLower(fd, PathIn(path, name), name));
    return Ok();
  }

  // The lower layer's `name` (in `lower_directory`) is not visible any more.
  Status HideLower(int lower_directory, const std::string& path, const std::string& name) {
    if (ignored_) return Ok();
    struct stat st {};
    if (::fstatat(lower_directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return Ok();
    if (Skip(path, name, false) || NotCopied(lower_directory, path, name)) return Ok();
    if (S_ISREG(st.st_mode) && NeverReadable(lower_directory, name)) return Ok();
    if (S_ISDIR(st.st_mode)) {
      Push({path, Pending::Layer::kGone});
      return Ok();
    }
    if (GitMode(st.st_mode) == 0 || WasIgnored(path, false)) return Ok();
    return visitor_.gone(path);
  }

  Status VisitUpper(const Pending& item) {
    Result<Fd> upper = OpenDirectory(upper_, item.path, Unreadable::kMakeReadable);
    if (!upper.ok()) {
      LeaveOut(item.path, "cannot be read", true, true);
      return Ok();
    }
    int upper_directory = upper.value().get();
    Fd lower;
    Result<Fd> opened = OpenDirectory(lower_, item.path, Unreadable::kFail);
    if (opened.ok()) lower = std::move(opened).value();
    NoteSubmodule(lower.get(), item.path);
    if (LeaveOutFilled(upper_directory, lower.get(), item.path)) return Ok();
    char mark = copy_ != nullptr ? '\0' : OverlayMark(upper_directory, "opaque");
    bool hiding = item.layer == Pending::Layer::kHiding || (mark == 'y' && !item.path.empty());
    EnterRules(item.path, upper_directory, lower.get(), !hiding);
    std::vector<std::string> names = Names(upper_directory, item.path);
    for (const std::string& name : names) {
      TRY(VisitEntry(upper_directory, lower.get(), PathIn(item.path, name), name,
                     {hiding, mark == 'x', item.touched}));
    }
    if (!hiding || !lower.valid()) return Ok();
    struct stat st {};
    // From an untouched directory of a copy, the agent removed nothing.
    if (!item.touched && ::fstat(upper_directory, &st) == 0 && !Touched(st)) return Ok();
    for (const std::string& name : Names(lower.get(), item.path)) {
      if (std::binary_search(names.begin(), names.end(), name)) continue;
      TRY(HideLower(lower.get(), PathIn(item.path, name), name));
    }
    return Ok();
  }

  struct Around {
    bool hiding = false;
    bool marked_whiteouts = false;
    bool touched = false;
  };

  // `lower_directory` is -1 when the lower layer has no directory here.
  Status VisitEntry(int upper_directory, int lower_directory, const std::string& path,
                    const std::string& name, const Around& around) {
    struct stat st {};
    if (::fstatat(upper_directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      LeaveOut(path, "cannot be read", true);
      return Ok();
    }
    bool whiteout = IsWhiteout(upper_directory, name, st, around.marked_whiteouts);
    if (Skip(path, name, !whiteout)) return Ok();
    if (NotCopied(lower_directory, path, name)) return Ok();
    struct stat below {};
    bool has_lower = lower_directory >= 0 &&
                     ::fstatat(lower_directory, name.c_str(), &below, AT_SYMLINK_NOFOLLOW) == 0;
    bool touched = around.touched || Touched(st);
    if (S_ISDIR(st.st_mode)) {
      bool over_directory = has_lower && S_ISDIR(below.st_mode);
      if (has_lower && !over_directory && touched) TRY(HideLower(lower_directory, path, name));
      if (LeftToRules(path, true, !over_directory, touched || !over_directory)) return Ok();
      if (!over_directory && IsEnvironment(upper_directory, path, name)) {
        LeaveOut(path, ignored_ ? kEnvironmentIgnored : kEnvironmentMade, false, true);
        return Ok();
      }
      bool hides = !over_directory || around.hiding;
      Push({path, hides ? Pending::Layer::kHiding : Pending::Layer::kMerged, touched});
      return Ok();
    }
    if (!touched) return Ok();  // The agent left it as it was copied.
    bool file = !whiteout && GitMode(st.st_mode) != 0;
    // A file over a file is one change; anything else takes away what was there.
    bool over_file = has_lower && GitMode(below.st_mode) != 0;
    if (has_lower && !(file && over_file)) TRY(HideLower(lower_directory, path, name));
    if (whiteout) return Ok();
    if (!file) {
      LeaveOut(path, SpecialFileName(st.st_mode), false);
      return Ok();
    }
    return LeftToRules(path, false, !over_file, true) ? Ok() : visitor_.present(path);
  }

  // Returns whether the agent's directory `name` is a Python environment, and nothing tracked.
  bool IsEnvironment(int directory, const std::string& path, const std::string& name) const {
    return !with_git_ && ExistsIn(directory, (name + "/pyvenv.cfg").c_str()) &&
           ExistsIn(directory, (name + "/bin/python").c_str()) &&
           (repository_ == nullptr || !Tracked(path, true));
  }

  static bool IsWhiteout(int directory, const std::string& name, const struct stat& st,
                         bool marked) {
    if (S_ISCHR(st.st_mode)) return st.st_rdev == makedev(0, 0);
    if (!marked || !S_ISREG(st.st_mode) || st.st_size != 0) return false;
    Result<Fd> file = sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return file.ok() && OverlayMark(file.value().get(), "whiteout") != 0;
  }

  static const char* SpecialFileName(mode_t mode) {
    if (S_ISFIFO(mode)) return "a named pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
  }

  int upper_;
  const CopyFacts* copy_;
  int lower_;
  const Meanwhile* meanwhile_;
  const std::set<std::string>* added_;
  bool with_git_;
  bool ignored_;  // Only what the rules ignore is reported.
  const Repository* repository_;
  int64_t entries_left_;
  const UpperVisitor& visitor_;
  Submodules submodules_;
  AgentIgnores rules_;
  bool has_gitmodules_ = false;  // Otherwise there is no need to ask the index.
  std::vector<Pending> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace

std::string PathIn(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

Result<std::vector<std::string>> ListNames(int directory, int64_t entries_max, size_t bytes_max) {
  Fd copy = TRY(sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy.get()), ::closedir);
  if (stream == nullptr) return Errno("fdopendir");
  (void)copy.Take();  // The stream's now.
  std::vector<std::string> names;
  size_t bytes = 0;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (static_cast<int64_t>(names.size()) >= entries_max) {
      return Error{Code::kInvalid, "too many entries"};
    }
    bytes += name.size();
    if (bytes > bytes_max) {
      return Error{Code::kInvalid,
                   "its names have more than " + std::to_string(bytes_max) + " bytes"};
    }
    names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return Errno("readdir");
  std::sort(names.begin(), names.end());
  return names;
}

char OverlayMark(int fd, const char* name) {
  for (const char* space : {"user.overlay.", "trusted.overlay."}) {
    char value[8];
    ssize_t n = ::fgetxattr(fd, (std::string(space) + name).c_str(), value, sizeof value);
    if (n == 0) return 'y';  // The whiteout mark has no value.
    if (n > 0) return value[0];
  }
  return 0;
}

CopyFacts FactsOfCopy(const ChangedTree& tree, const std::string& checkout) {
  CopyFacts copy;
  copy.made = *tree.copied;
  for (const std::string& path : tree.not_copied) {
    if (path.starts_with(checkout + "/")) copy.left_out.push_back(path.substr(checkout.size() + 1));
  }
  return copy;
}

Result<bool> HasNoBase(int upper, int lower, const CopyFacts& copy) {
  bool expected = false;
  std::vector<std::string> names = TRY(ListNames(lower, kTopEntriesMax));
  for (const std::string& name : names) {
    if (std::find(copy.left_out.begin(), copy.left_out.end(), name) != copy.left_out.end()) {
      continue;
    }
    if (sys::ExistsAt(upper, name)) return false;
    expected = true;
  }
  return expected;
}

Status WalkUpper(WalkedLayers layers, const Repository* repository, int64_t entries_max,
                 const UpperVisitor& visitor) {
  return Walk(layers, repository, entries_max, visitor).Run();
}

}  // namespace change
