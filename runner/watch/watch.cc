// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/sys.h"
#include "report/read.h"
#include "report/terminal/live_view.h"
#include "session/place.h"
#include "session/pool.h"

namespace watch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{500};
// Reading the records anew takes a sixth of this process's time at most.
constexpr int kRestFactor = 5;
// A look at files is the sandbox's work: it takes a twentieth of its time at most.
constexpr int kFilesRestFactor = 20;
constexpr milliseconds kFilesTime{2000};

milliseconds Since(Deadline::Clock::time_point began) {
  return std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - began);
}

}  // namespace

Result<Watch> Watch::Find(const std::string& what, AskState state) {
  session::Place place = TRY(session::Place::Open());
  if (session::CheckName(what).ok()) {
    Result<session::Facts> facts = place.Find(what);
    if (facts.ok()) {
      if (facts.value().backend == session::kPoolBackend) {
        return Error{Code::kUsage, "'" + what + "' is a pool of sandboxes",
                     "agentic-ci sandbox take " + what};
      }
      bool native = facts.value().backend == "native";
      Watch watch(facts.value().report_dir, what, native, std::move(state));
      watch.keeper_ = facts.value().pid;
      return watch;
    }
  }
  if (sys::Exists(what + "/events.ocsf.jsonl") || sys::Exists(what + "/run.json")) {
    return Watch(what, "", false, std::move(state));
  }
  return Error{Code::kNotFound, "no sandbox is named '" + what + "', and no run reports there",
               "agentic-ci watch agentic-ci-report"};
}

Result<bool> Watch::Follow(const Reader& reader) {
  for (;;) {
    auto began = Deadline::Clock::now();
    bool ended = TRY(HasEnded());  // Before the last look, which then misses nothing.
    Look look;
    look.requests = TRY(LookAtRequests());
    if (!sandbox_.empty() && !ended) {
      // A sandbox that has no time to answer is asked again.
      Result<session::SandboxState> state = state_(sandbox_);
      if (state.ok()) look.state = std::move(state).value();
      look.files = LookAtFiles();
    }
    milliseconds rest = ended ? milliseconds{0} : std::max(kInterval, kRestFactor * Since(began));
    if (!TRY(reader(std::move(look), rest))) return false;
    if (ended) return true;
  }
}

Result<std::optional<report::DenialList>> Watch::LookAtRequests() {
  struct stat about {};
  std::optional<report::DenialList> list;
  if (::stat((directory_ + "/events.ocsf.jsonl").c_str(), &about) != 0) return list;
  if (about.st_size == std::exchange(size_, about.st_size)) return list;
  list = TRY(report::ReadDenials(directory_));
  return list;
}

session::ChangedFiles Watch::LookAtFiles() {
  if (!asks_files_ || !files_rest_.passed()) return {};
  auto began = Deadline::Clock::now();
  auto look = [&]() -> Result<session::ChangedFiles> {
    if (!files_) {
      session::Place place = TRY(session::Place::Open());
      files_ = TRY(session::FileWatch::Open(place, sandbox_));
    }
    return files_->Look(Deadline::After(kFilesTime));
  };
  Result<session::ChangedFiles> changed = look();
  files_rest_ = Deadline::After(kFilesRestFactor * Since(began));
  if (changed.ok()) return std::move(changed).value();
  files_.reset();  // It is asked again, from the beginning.
  return {};
}

Result<bool> Watch::HasEnded() const {
  if (!sandbox_.empty()) {
    session::Place place = TRY(session::Place::Open());
    Result<session::Facts> facts = place.Find(sandbox_);
    return !facts.ok() || facts.value().report_dir != directory_ || facts.value().pid != keeper_;
  }
  if (sys::Exists(directory_ + "/run.json")) return true;
  // The run holds this lock (run/report_directory.cc). Once it is ours, there is none to hinder.
  Fd directory = TRY(sys::Open(directory_, O_RDONLY | O_DIRECTORY));
  return ::flock(directory.get(), LOCK_SH | LOCK_NB) == 0;
}

Result<std::string> Watch::RenderEnd() const {
  Result<report::PostedReport> report = report::ReadReport(directory_);
  if (report.ok()) return report::RenderEnd(report.value().record, directory_, {});
  return Error{Code::kIo, "it ended without a report: " + report.error().what};
}

}  // namespace watch
