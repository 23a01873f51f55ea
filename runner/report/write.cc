// SPDX-License-Identifier: Apache-2.0
#include "report/write.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/sys.h"
#include "report/findings.h"
#include "report/host_groups.h"
#include "report/html.h"
#include "report/record_json.h"
#include "report/summary.h"

namespace report {
namespace {

constexpr const char* kWritten[] = {
    "changes.patch",       "changes.json",
    "findings.sarif",      "gl-code-quality-report.json",
    "gl-sast-report.json", "policy-suggestion.yml",
    "prompt.txt",          "summary.md",
    "report.html",         "run.json",
};
constexpr size_t kStepSummaryBytesMax =
    900000;  // GitHub takes 1 MiB for a step, all of it together.

std::string RenderSuggestion(const RunRecord& record) {
  std::vector<advise::Denial> denials;
  // The list of the comment and the page.
  for (const DeniedRequest& denied : DenialsToAdvise(record)) {
    if (!denied.allow_line.empty()) denials.push_back(denied.denial);
  }
  std::string yaml = advise::SuggestPolicy(denials);
  return yaml.empty() ? "# nothing to suggest: no refused request can be allowed\n" : yaml;
}

using Files = std::vector<std::pair<const char*, std::string>>;

Status WriteFiles(int directory, const Files& files) {
  for (const auto& [name, bytes] : files) {
    TRY(WriteWhole(directory, name, bytes).Context(std::string("writing ") + name));
  }
  return Ok();
}

std::string RenderRecord(const ReportInput& input) {
  return RenderRun({input.record, input.agent_text, input.agent_tail});
}

std::string RenderStepSummary(const ReportInput& input) {
  return RenderSummary(input, {.bytes_max = kStepSummaryBytesMax,
                               .run_url = input.record.event.run_url,
                               .pages = PagesOf(input.record.event)});
}

// Returns the files that `post` reads, and the summary for people.
Files RenderEssence(const ReportInput& input) {
  return {{"changes.patch", input.patch},
          {"changes.json", RenderChanges(input.record.changes, input.files)},
          {"summary.md", RenderStepSummary(input)},
          {"run.json", RenderRecord(input)}};
}

}  // namespace

// Replaces whatever has either name: the directory may lie in a prepared checkout.
Status WriteWhole(int directory, const std::string& name, std::string_view bytes) {
  const std::string temporary = "." + name + ".new";
  ::unlinkat(directory, temporary.c_str(), 0);
  const Fd file =
      TRY(sys::OpenAt(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  Status written = sys::WriteAll(file.get(), bytes);
  if (written.ok() && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
    written = Errno("renameat");
  }
  if (!written.ok()) ::unlinkat(directory, temporary.c_str(), 0);
  return written;
}

Status WriteConflicts(const std::string& directory, const std::vector<ConflictFile>& conflicts) {
  if (conflicts.empty()) return Ok();
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  const Fd top = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY));
  for (const ConflictFile& conflict : conflicts) {
    const std::string path = std::string(kConflictsDirectory) + "/" + conflict.path;
    const size_t last = path.rfind('/');
    for (size_t end = path.find('/'); end <= last; end = path.find('/', end + 1)) {
      ::mkdirat(top.get(), path.substr(0, end).c_str(), 0755);
    }
    const Fd place = TRY(sys::OpenBeneath(top.get(), path.substr(0, last), kDirectory));
    const std::string name = path.substr(last + 1);
    ::unlinkat(place.get(), name.c_str(), 0);
    const Fd file = TRY(sys::OpenAt(place.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                    conflict.executable ? 0755 : 0644));
    TRY(sys::WriteAll(file.get(), conflict.bytes).Context("writing " + path));
  }
  return Ok();
}

Status WriteReport(const std::string& directory, const ReportInput& input) {
  const Fd into = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY));
  TRY(WriteConflicts(directory, input.conflicts));
  if (!input.prompt.empty()) {
    TRY(WriteWhole(into.get(), "prompt.txt", input.prompt).Context("writing prompt.txt"));
  }
  return WriteFiles(into.get(), {{"changes.patch", input.patch},
                                 {"changes.json", RenderChanges(input.record.changes, input.files)},
                                 {"findings.sarif", RenderSarif(input.record, input.job_key)},
                                 {"gl-code-quality-report.json", RenderCodeQuality(input.record)},
                                 {"gl-sast-report.json", RenderSast(input.record)},
                                 {"policy-suggestion.yml", RenderSuggestion(input.record)},
                                 {"summary.md", RenderStepSummary(input)},
                                 {"report.html", RenderHtml(input)},
                                 {"run.json", RenderRecord(input)}});
}

bool WriteLess(const std::string& directory, ReportInput input) {
  const bool empty = input.patch.empty();
  Result<Fd> into = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!into.ok()) return empty;
  auto clear = [&] {
    for (const char* name : kWritten) ::unlinkat(into.value().get(), name, 0);
  };
  clear();
  if (WriteFiles(into.value().get(), RenderEssence(input)).ok()) return true;
  clear();
  input.patch.clear();
  input.record.changes.complete = false;
  if (!WriteFiles(into.value().get(), RenderEssence(input)).ok()) clear();
  return empty;
}

}  // namespace report
