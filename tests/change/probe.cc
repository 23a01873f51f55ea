// SPDX-License-Identifier: Apache-2.0
// change_probe capture UPPER CHECKOUT PATCH_OUT [--no-repository]  writes the patch, prints records
// change_probe apply CHECKOUT PATCH [--no-repository]              applies a patch
// change_probe judge UPPER CHECKOUT                                prints findings
// change_probe ignored CHECKOUT < PATHS                            prints those that are, NUL
// behind each
#include <fcntl.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/sys.h"
#include "change/agent_ignores.h"
#include "change/apply.h"
#include "change/capture.h"
#include "change/gate.h"
#include "change/repository.h"

namespace {

using change::ChangeSet;

Result<ChangeSet> Capture(const std::string& upper, const std::string& checkout,
                          bool use_repository) {
  Fd fd = TRY(sys::Open(upper, O_RDONLY | O_DIRECTORY));
  std::optional<change::Repository> repository;
  if (use_repository) repository = TRY(change::Repository::Open(checkout));
  return change::CaptureChanges(fd.get(), checkout, repository.has_value() ? &*repository : nullptr,
                                change::CaptureLimits{});
}

Status CaptureTo(const std::vector<std::string>& args) {
  ChangeSet changes = TRY(Capture(args[1], args[2], args.size() == 4));
  TRY(sys::WriteFile(args[3], changes.patch));
  for (const change::FileChange& file : changes.files) {
    std::printf("%o %o %d %lld %lld %s\n", file.old_mode, file.new_mode, file.binary,
                static_cast<long long>(file.additions), static_cast<long long>(file.deletions),
                file.path.c_str());
  }
  for (const change::LeftOut& left : changes.left_out) {
    std::printf("left-out %s: %s\n", left.path.c_str(), left.reason.c_str());
  }
  std::printf("ignored %lld complete %d\n", static_cast<long long>(changes.ignored_count),
              changes.complete);
  return Ok();
}

Status Apply(const std::vector<std::string>& args) {
  ChangeSet changes;
  changes.patch = TRY(sys::ReadFile(args[2], 1 << 30));
  std::optional<change::Repository> repository;
  if (args.size() == 3) repository = TRY(change::Repository::Open(args[1]));
  return change::ApplyPatch(args[1], repository.has_value() ? &*repository : nullptr, changes);
}

Status Judge(const std::vector<std::string>& args) {
  ChangeSet changes = TRY(Capture(args[1], args[2], false));
  change::Verdict verdict = change::JudgeChanges(changes, change::GateLimits{});
  for (const change::GateFinding& finding : verdict.findings) {
    std::printf("%s %d %s:%lld %s\n", finding.gate.c_str(), static_cast<int>(finding.severity),
                finding.path.c_str(), static_cast<long long>(finding.line),
                finding.message.c_str());
  }
  std::printf("accepted %d\n", verdict.accepted);
  return Ok();
}

Status Ignored(const std::vector<std::string>& args) {
  change::Repository repository = TRY(change::Repository::Open(args[1]));
  change::AgentIgnores ignores(&repository);
  std::string paths = TRY(sys::ReadAll(0, 1 << 30));
  for (size_t at = 0; at < paths.size(); at = paths.find('\0', at) + 1) {
    const char* path = paths.c_str() + at;
    if (ignores.IgnoredBefore(path)) std::printf("%s%c", path, '\0');
  }
  return Ok();
}

Status Main(const std::vector<std::string>& args) {
  if (args.size() >= 4 && args[0] == "capture") return CaptureTo(args);
  if (args.size() >= 3 && args[0] == "apply") return Apply(args);
  if (args.size() == 3 && args[0] == "judge") return Judge(args);
  if (args.size() == 2 && args[0] == "ignored") return Ignored(args);
  return Error{Code::kUsage, "see the head of probe.cc"};
}

}  // namespace

int main(int argc, char** argv) {
  Status status = Main(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().what.c_str());
  return 1;
}
