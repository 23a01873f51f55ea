// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/named_path.h"
#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/json.h"
#include "report/event_lines.h"
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
    report::kProgramsFile,
    report::kFilesFile,
    "summary.md",
    "report.html",
    "policy-suggestion.yml",
    "prompt.txt",
    "gl-code-quality-report.json",
    "gl-sast-report.json",
};

constexpr char kRecord[] = "run.json";
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
Status RefuseLinks(const std::string& path) {
  std::error_code failed;
  std::filesystem::recursive_directory_iterator entries(path, failed);
  for (; !failed && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(failed)) {
    std::error_code unknown;
    std::filesystem::file_type type = entries->symlink_status(unknown).type();
    if (type == std::filesystem::file_type::regular ||
        type == std::filesystem::file_type::directory) {
      continue;
    }
    return Taken(entries->path().string(), "the report directory may contain only files");
  }
  return Ok();
}

// Returns whether run.json was written by agentic-ci, of any version.
bool IsRecord(int directory) {
  Result<Fd> file = sys::OpenAt(directory, kRecord, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok()) return false;
  Result<std::string> text = sys::ReadAll(file.value().get(), kRecordBytesMax);
  if (!text.ok()) return false;
  Result<codec::Json> record = codec::ParseJson(text.value(), {.bytes_max = kRecordBytesMax});
  return record.ok() && record.value().Find("tool_version") != nullptr &&
         record.value().Find("outcome") != nullptr;
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

// The agent's versions of files that both it and others changed in an earlier run.
Status RemoveConflicts(int directory) {
  if (!sys::ExistsAt(directory, report::kConflictsDirectory)) return Ok();
  Result<Fd> file = sys::OpenAt(directory, kRecord, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok()) return Ok();
  Result<std::string> text = sys::ReadAll(file.value().get(), kRecordBytesMax);
  if (!text.ok()) return Ok();
  Result<codec::Json> record = codec::ParseJson(text.value(), {.bytes_max = kRecordBytesMax});
  const codec::Json* findings = record.ok() ? record.value().Find("findings") : nullptr;
  if (findings == nullptr || findings->array() == nullptr) return Ok();
  for (const codec::Json& finding : *findings->array()) {
    const codec::Json* rule = finding.Find("rule");
    if (rule == nullptr || rule->string() == nullptr || *rule->string() != report::kConflictRule) {
      continue;
    }
    return sys::RemoveTree(directory, report::kConflictsDirectory);
  }
  return Ok();
}

// The reports of an earlier run's checks (run/checks.h); files that no run has written stay.
void RemoveCheckReports(int directory) {
  for (size_t i = 1; i <= kTaskChecksMax; ++i) {
    const std::string below = "checks/" + std::to_string(i);
    Result<Fd> report = sys::OpenBeneath(directory, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!report.ok() || !IsRecord(report.value().get())) continue;
    for (const char* name : kFiles) (void)::unlinkat(report.value().get(), name, 0);
    (void)::unlinkat(directory, below.c_str(), AT_REMOVEDIR);
  }
  (void)::unlinkat(directory, "checks", AT_REMOVEDIR);
}

}  // namespace

Result<ReportDirectory> ReportDirectory::Prepare(const std::string& path) {
  TRY(RefuseLinkedPath(path));
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) {
    return Taken(path, "is not a directory");
  }
  TRY(sys::MakeDirectories(path));
  ReportDirectory directory;
  Fd fd = TRY(sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  directory.path = TRY(sys::RealPath(path));
  // A file system without locks is used all the same.
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Taken(path, "another run is writing its report there");
  }
  TRY(RefuseLinks(directory.path));
  TRY(RefuseForeignFiles(fd.get(), path));
  TRY(RemoveConflicts(fd.get()).Context("removing an earlier run's conflicts"));
  for (const char* name : kFiles) {
    if (::unlinkat(fd.get(), name, 0) != 0 && errno != ENOENT) {
      return Errno("removing " + path + "/" + name);
    }
  }
  RemoveCheckReports(fd.get());
  directory.events_jsonl = TRY(Create(fd.get(), kFirstFile));
  directory.events_log = TRY(Create(fd.get(), "events.log"));
  directory.agent_jsonl = TRY(Create(fd.get(), "agent.jsonl"));
  directory.agent_log = TRY(Create(fd.get(), "agent.log"));
  directory.lock = std::move(fd);
  return directory;
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
