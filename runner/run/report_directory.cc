// SPDX-License-Identifier: Apache-2.0
#include "run/report_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"

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
    "summary.md",
    "report.html",
    "policy-suggestion.yml",
    "gl-code-quality-report.json",
};

Result<Fd> Create(int directory, const char* name) {
  return sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0644);
}

// A link in a directory that a pull request brought along would be followed by whoever uploads the
// report, and would take one of the machine's own files with it.
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
    return Error{Code::kRefused,
                 entries->path().string() + ": only files may stand in the report directory",
                 "rm " + entries->path().string()};
  }
  return Ok();
}

}  // namespace

Result<ReportDirectory> ReportDirectory::Prepare(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) {
    return Error{Code::kRefused, path + ": the report directory is something else already",
                 "rm " + path};
  }
  TRY(sys::MakeDirectories(path));
  ReportDirectory directory;
  Fd fd = TRY(sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  directory.path = TRY(sys::RealPath(path));
  for (const char* name : kFiles) {
    if (::unlinkat(fd.get(), name, 0) != 0 && errno != ENOENT) {
      return Errno("removing " + path + "/" + name);
    }
  }
  TRY(RefuseLinks(directory.path));
  directory.events_jsonl = TRY(Create(fd.get(), "events.ocsf.jsonl"));
  directory.events_log = TRY(Create(fd.get(), "events.log"));
  directory.agent_jsonl = TRY(Create(fd.get(), "agent.jsonl"));
  directory.agent_log = TRY(Create(fd.get(), "agent.log"));
  return directory;
}

}  // namespace run
