// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/named_path.h"
#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/json.h"
#include "forge/open/open.h"
#include "report/event_lines.h"
#include "report/read.h"
#include "report/record.h"
#include "run/trusted/task.h"

namespace run {
namespace {

// Everything a run may leave there: an old file must not pass for one of this run.
constexpr const char* kFiles[] = {
    "run.json",
    "changes.patch",
    "changes.json",
    "findings.sarif",
    "agent.log",
    "agent.jsonl",
    "events.log",
    "events.ocsf.jsonl",
    kGatewayLog,
    report::kProgramsFile,
    report::kFilesFile,
    "summary.md",
    "report.html",
    "policy-suggestion.yml",
    "prompt.txt",
    "gl-code-quality-report.json",
    "gl-sast-report.json",
    report::kStatementFile,
    report::kUnsignedFile,
};

constexpr char kRecord[] = "run.json";
constexpr char kIgnore[] = ".gitignore";
constexpr char kFirstFile[] = "events.ocsf.jsonl";  // That Prepare() makes.
constexpr size_t kRecordBytesMax = size_t{16} << 20;

Result<Fd> Create(int directory, const char* name) {
  return sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0644);
}

// No hint says what to remove: what stands in the way is not ours.
Error Taken(const std::string& path, const std::string& why) {
  return Error{Code::kRefused, path + ": " + why, "--report-dir OTHER-DIRECTORY"};
}

// A link on the way may be the pull request's, and would lead the report, and the removal of an
// earlier one, anywhere on the machine.
Status RefuseLinkedPath(const std::string& path) {
  std::optional<std::string> link = FindLinkOnPath(path);
  return link ? Taken(*link, "the report directory cannot be a symbolic link") : Ok();
}

// A link in a directory that a pull request contains would be followed by the program that uploads
// the report, and would take one of the machine's own files with it.
Status RefuseLinks(const ReportDirectory& directory) {
  std::error_code failed;
  const std::string at = directory.at();
  std::filesystem::recursive_directory_iterator entries(at, failed);
  for (; !failed && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(failed)) {
    std::error_code unknown;
    std::filesystem::file_type type = entries->symlink_status(unknown).type();
    if (type == std::filesystem::file_type::regular ||
        type == std::filesystem::file_type::directory) {
      continue;
    }
    return Taken(directory.path + entries->path().string().substr(at.size()),
                 "the report directory may contain only files");
  }
  if (!failed) return Ok();
  return Taken(directory.path, "cannot be looked through: " + failed.message());
}

// Returns run.json; null where there is none, or it is not JSON.
codec::Json ReadRecord(int directory) {
  Result<Fd> file = sys::OpenAt(directory, kRecord, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok()) return {};
  Result<std::string> text = sys::ReadAll(file.value().get(), kRecordBytesMax);
  if (!text.ok()) return {};
  Result<codec::Json> record = codec::ParseJson(text.value(), {.bytes_max = kRecordBytesMax});
  return record.ok() ? std::move(record).value() : codec::Json();
}

// Returns whether run.json was written by agentic-ci, of any version.
bool IsRecord(int directory) {
  const codec::Json record = ReadRecord(directory);
  return record.Find("tool_version") != nullptr && record.Find("outcome") != nullptr;
}

// Returns whether an entry of the list `list` in `record` has this text at `key`.
bool AnyHas(const codec::Json& record, std::string_view list, std::string_view key,
            std::string_view text) {
  const codec::Json* entries = record.Find(list);
  if (entries == nullptr || entries->array() == nullptr) return false;
  return std::ranges::any_of(*entries->array(),
                             [&](const codec::Json& entry) { return entry.StringAt(key) == text; });
}

// Only an earlier run's files are removed: where there is a record of one, or a run was killed
// before it could write its record.
Status RefuseForeignFiles(int directory, const std::string& path) {
  if (sys::ExistsAt(directory, kRecord) ? IsRecord(directory)
                                        : sys::ExistsAt(directory, kFirstFile)) {
    return Ok();
  }
  for (const char* name : kFiles) {
    if (!sys::ExistsAt(directory, name)) continue;
    return Taken(path, std::string("holds a ") + name + " that is not from an earlier run");
  }
  return Ok();
}

// Returns whether the agent's versions of files that both it and others changed in an earlier run
// are there.
bool HasConflicts(int directory) {
  return sys::ExistsAt(directory, report::kConflictsDirectory) &&
         AnyHas(ReadRecord(directory), "findings", "rule", report::kConflictRule);
}

// The reports of an earlier run's checks (run/checks.h); files that no run has written stay.
void RemoveCheckReports(int directory) {
  for (size_t i = 1; i <= kTaskChecksMax; ++i) {
    const std::string below = "checks/" + std::to_string(i);
    Result<Fd> report = sys::OpenBeneath(directory, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!report.ok() || !IsRecord(report.value().get())) continue;
    for (const char* name : kFiles) (void)::unlinkat(report.value().get(), name, 0);
    (void)::unlinkat(report.value().get(), kIgnore, 0);
    (void)::unlinkat(directory, below.c_str(), AT_REMOVEDIR);
  }
  (void)::unlinkat(directory, "checks", AT_REMOVEDIR);
}

// Removes an earlier run's report; `path` is shown.
Status Clear(int directory, const std::string& path) {
  if (HasConflicts(directory)) {
    TRY(sys::RemoveTree(directory, report::kConflictsDirectory)
            .Context("removing an earlier run's conflicts"));
  }
  for (const char* name : kFiles) {
    if (::unlinkat(directory, name, 0) != 0 && errno != ENOENT) {
      return Errno("removing " + path + "/" + name);
    }
  }
  RemoveCheckReports(directory);
  return Ok();
}

// Moves a report, whose record goes last: what is interrupted can be told to be whole.
Status Move(int from, int to) {
  const bool conflicts = HasConflicts(from);
  auto move = [&](const char* name) -> Status {
    if (::renameat(from, name, to, name) == 0 || errno == ENOENT) return Ok();
    return Errno(std::string("moving ") + name);
  };
  if (conflicts) TRY(move(report::kConflictsDirectory));
  TRY(move("checks"));
  for (const char* name : kFiles) {
    if (std::string_view(name) != kRecord) TRY(move(name));
  }
  return move(kRecord);
}

Result<Fd> OpenEarlier(int directory) {
  return sys::OpenAt(directory, kEarlierReport, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// Moves the report of a run whose agent started to kEarlierReport, in place of one that is there.
// Returns whether there was one.
Result<bool> SetEarlierAside(int directory, const std::string& path) {
  if (!IsRecord(directory) || !AnyHas(ReadRecord(directory), "phases", "name", "agent")) {
    return false;
  }
  const std::string place = path + "/" + kEarlierReport;
  if (::mkdirat(directory, kEarlierReport, 0755) != 0 && errno != EEXIST) {
    return Errno("mkdir " + place);
  }
  Result<Fd> earlier = OpenEarlier(directory);
  if (!earlier.ok()) return Taken(place, "is not a directory");
  TRY(RefuseForeignFiles(earlier.value().get(), place));
  TRY(Clear(earlier.value().get(), place));
  TRY(Move(directory, earlier.value().get()).Context("setting the earlier report aside"));
  return true;
}

// Keeps git from a report in a checkout. A directory that holds anything else is not ours to hide.
Status IgnoreInGit(int directory) {
  if (!TRY(sys::DirectoryNames(directory)).empty()) return Ok();
  const Fd ignore = TRY(Create(directory, kIgnore));
  return sys::WriteAll(ignore.get(), "*\n");
}

std::string ParentOf(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
}

bool IsIn(const std::string& path, const std::string& directory) {
  return path.starts_with(directory.ends_with('/') ? directory : directory + "/");
}

// In a user namespace, an owner that has no number there has no process either.
bool IsUnmapped(uid_t owner) {
  constexpr uid_t kOverflow = 65534;
  Result<std::string> map = sys::ReadFile("/proc/self/uid_map", 4096);
  return owner == kOverflow && map.ok() && map.value().find("4294967295") == std::string::npos;
}

// Returns whether the directory is in what the job works on, which its own user shares out: runners
// make workspaces that all may write, and of which a container's root owns nothing.
bool IsInWorkspace(const std::string& path, const std::string& workdir) {
  for (const char* name : {"GITHUB_WORKSPACE", "RUNNER_TEMP", "CI_PROJECT_DIR"}) {
    const std::optional<std::string> value = sys::Environment(name);
    if (!value || value->empty()) continue;
    Result<std::string> workspace = sys::RealPath(*value);
    if (workspace.ok() && workspace.value() != "/" && IsIn(path, workspace.value())) return true;
  }
  const std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  struct stat top {
  }, git{};
  if (!inside || ::lstat(inside->top.c_str(), &top) != 0 ||
      ::lstat((inside->top + "/.git").c_str(), &git) != 0 || git.st_uid != top.st_uid) {
    return false;
  }
  Result<std::string> here = sys::RealPath(workdir);
  return top.st_uid == ::geteuid() || (here.ok() && IsIn(here.value() + "/", inside->top));
}

// Refuses the canonical `place` and what leads to it; see OpenReportPlace().
Status RefuseOthersPlace(std::string place, const std::string& workdir) {
  if (IsInWorkspace(place + "/report", workdir)) return Ok();
  for (;; place = ParentOf(place)) {
    struct stat st {};
    if (::lstat(place.c_str(), &st) != 0) {
      if (errno != ENOENT) return Errno(place);
      continue;  // It is about to be made.
    }
    if (S_ISLNK(st.st_mode)) continue;  // What it leads to is looked at, too.
    const bool ours = st.st_uid == ::geteuid();
    const bool open = (st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0;
    if (open || (!ours && st.st_uid != 0 && !IsUnmapped(st.st_uid))) {
      return Taken(place, "other users could put another directory in the place of one in it");
    }
    if (place == "/" || (ours && (st.st_mode & (S_IRWXG | S_IRWXO)) == 0)) return Ok();
  }
}

}  // namespace

Result<ReportDirectory> ReportDirectory::Prepare(const std::string& path,
                                                 const std::string& workdir) {
  return Open(path, workdir)
      .Context("preparing the report directory")
      .Kind(ErrorKind::kReportPlace);
}

Result<ReportDirectory> ReportDirectory::Open(const std::string& path, const std::string& workdir) {
  TRY(RefuseLinkedPath(path));
  // As it is named: who owns a directory on the way could lead it elsewhere just now.
  std::error_code failed;
  const std::filesystem::path named = std::filesystem::absolute(path, failed).lexically_normal();
  if (failed) return Taken(path, "has no absolute path");
  TRY(RefuseOthersPlace(ParentOf(named.string()), workdir));
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) {
    return Taken(path, "is not a directory");
  }
  TRY(sys::MakeDirectories(path));
  const std::string real = TRY(sys::RealPath(path));
  TRY(RefuseOthersPlace(real, workdir));  // Itself too: another user's files are theirs to change.
  return PrepareIn(TRY(sys::Open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)), path, real);
}

Result<ReportDirectory> ReportDirectory::PrepareBelow(const std::string& below) const {
  for (size_t end = below.find('/');; end = below.find('/', end + 1)) {
    const std::string name = below.substr(0, end);
    if (::mkdirat(lock.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
      return Errno("mkdir " + path + "/" + name);
    }
    if (end == std::string::npos) break;
  }
  Fd fd = TRY(sys::OpenBeneath(lock.get(), below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  const std::string shown = path + "/" + below;
  return PrepareIn(std::move(fd), shown, shown);
}

Result<ReportDirectory> ReportDirectory::PrepareIn(Fd fd, const std::string& path,
                                                   std::string real) {
  ReportDirectory directory;
  directory.path = std::move(real);
  directory.lock = std::move(fd);
  const int place = directory.lock.get();
  // A file system without locks is used all the same.
  if (::flock(place, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Taken(path, "another run is writing its report there");
  }
  TRY(RefuseLinks(directory));
  TRY(RefuseForeignFiles(place, path));
  TRY(IgnoreInGit(place));
  directory.has_earlier_ = TRY(SetEarlierAside(place, path));
  TRY(Clear(place, path));
  directory.events_jsonl = TRY(Create(place, kFirstFile));
  directory.events_log = TRY(Create(place, "events.log"));
  directory.agent_jsonl = TRY(Create(place, "agent.jsonl"));
  directory.agent_log = TRY(Create(place, "agent.log"));
  return directory;
}

Result<Fd> OpenReportPlace(const std::string& path, const std::string& workdir) {
  TRY(RefuseLinkedPath(path));
  TRY(sys::MakeDirectories(path));
  const std::string real = TRY(sys::RealPath(path));
  TRY(RefuseOthersPlace(real, workdir));
  return sys::Open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

void RemoveReport(int place, const std::string& name) {
  Result<Fd> report = sys::OpenAt(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!report.ok()) return;
  if (RefuseForeignFiles(report.value().get(), name).ok() &&
      Clear(report.value().get(), name).ok()) {
    (void)::unlinkat(report.value().get(), kIgnore, 0);
  }
  (void)::unlinkat(place, name.c_str(), AT_REMOVEDIR);
}

void ReportDirectory::Start() {
  started_ = true;
  Result<Fd> earlier = OpenEarlier(lock.get());
  if (!earlier.ok() || !IsRecord(earlier.value().get())) return;
  if (!Clear(earlier.value().get(), path + "/" + kEarlierReport).ok()) return;
  (void)::unlinkat(lock.get(), kEarlierReport, AT_REMOVEDIR);
}

Status ReportDirectory::Restore() {
  ENSURE(has_earlier() && !started_);
  TRY(Clear(lock.get(), path));
  const Fd earlier = TRY(OpenEarlier(lock.get()));
  TRY(Move(earlier.get(), lock.get()).Context("putting the earlier report back"));
  (void)::unlinkat(lock.get(), kEarlierReport, AT_REMOVEDIR);
  return Ok();
}

bool IsInCi() {
  Result<forge::Event> event = forge::ReadEvent(sys::Environment);
  return !event.ok() || event.value().forge != forge::ForgeKind::kNone ||
         !event.value().unread_ci.empty();
}

Result<std::string> SetReportAside(const std::string& path, const std::string& suffix) {
  std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  if (!inside || inside->below == ".") return std::string();
  for (size_t slash = inside->below.find('/');; slash = inside->below.find('/', slash + 1)) {
    const std::string place = inside->top + "/" + inside->below.substr(0, slash);
    struct stat st {};
    if (::lstat(place.c_str(), &st) != 0) return std::string();
    if (slash != std::string::npos && !S_ISLNK(st.st_mode)) continue;
    Result<Fd> directory = sys::Open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (directory.ok() && ::flock(directory.value().get(), LOCK_EX | LOCK_NB) != 0 &&
        errno == EWOULDBLOCK) {
      return std::string();
    }
    std::string moved = place + suffix;
    if (::rename(place.c_str(), moved.c_str()) != 0) return Errno("renaming " + place);
    return moved;
  }
}

}  // namespace run
