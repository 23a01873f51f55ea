// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/deadline.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "report/denials.h"
#include "report/read.h"
#include "report/terminal/live_view.h"
#include "report/terminal/request_lines.h"
#include "session/place.h"

namespace watch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{500};
// Reading the records anew takes a sixth of this process's time at most.
constexpr int kRestFactor = 5;
constexpr int64_t kHundred = 100;
constexpr int64_t kSteps[] = {90, 75, 50};  // Percent of a limit.

std::string Amount(int64_t value, const std::string& unit) {
  if (value < 0) return "not counted";
  if (unit == "bytes") return codec::RenderSize(value);
  return std::to_string(value) + (unit.empty() ? "" : " " + unit);
}

}  // namespace

std::string RenderLimit(const session::LimitUse& use) {
  std::string most = use.most > 0 ? " of " + Amount(use.most, use.unit) : ", no limit";
  return codec::NeutralLine(use.name) + ": " + Amount(use.used, use.unit) + most;
}

Result<Watch> Watch::Find(const std::string& what, AskState state) {
  session::Place place = TRY(session::Place::Open());
  if (session::CheckName(what).ok()) {
    Result<session::Facts> facts = place.Find(what);
    if (facts.ok()) return Watch(facts.value().report_dir, what, std::move(state));
  }
  if (sys::Exists(what + "/events.ocsf.jsonl") || sys::Exists(what + "/run.json")) {
    return Watch(what, "", std::move(state));
  }
  return Error{Code::kNotFound, "no sandbox is named '" + what + "', and no run reports there",
               "agentic-ci watch agentic-ci-report"};
}

Status Watch::Follow(const Sink& sink) {
  for (;;) {
    auto began = Deadline::Clock::now();
    bool ended = TRY(HasEnded());  // Before the last look, which then misses nothing.
    std::string requests = TRY(LookAtRequests());
    std::string lines = requests + LookAtLimits();
    if (!lines.empty()) TRY(sink(lines));
    if (ended) break;
    auto took = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - began);
    std::this_thread::sleep_for(std::max(kInterval, kRestFactor * took));
  }
  std::string end = TRY(RenderEnd());
  return sink(end);
}

Result<std::string> Watch::LookAtRequests() {
  struct stat about {};
  std::string lines;
  if (::stat((directory_ + "/events.ocsf.jsonl").c_str(), &about) != 0) return lines;
  if (about.st_size == std::exchange(size_, about.st_size)) return lines;
  report::DenialList list = TRY(report::ReadDenials(directory_));
  for (const std::string& entry : report::RenderRequests(list, false)) {
    if (told_.insert(entry).second) lines += entry;
  }
  return lines;
}

// A sandbox that has no time to answer is asked again.
std::string Watch::LookAtLimits() {
  if (sandbox_.empty()) return {};
  Result<session::SandboxState> state = state_(sandbox_);
  if (!state.ok()) return {};
  std::string lines;
  for (const session::LimitUse& use : state.value().limits) {
    if (use.most <= 0 || use.used < 0) continue;
    double percent = static_cast<double>(use.used) * kHundred / static_cast<double>(use.most);
    const auto* step = std::find_if(std::begin(kSteps), std::end(kSteps), [&](int64_t one) {
      return percent >= static_cast<double>(one);
    });
    if (step == std::end(kSteps) || percent_[use.name] >= *step) continue;
    percent_[use.name] = *step;
    lines += "limit    " + RenderLimit(use) + "\n";
  }
  return lines;
}

Result<bool> Watch::HasEnded() const {
  if (!sandbox_.empty()) {
    session::Place place = TRY(session::Place::Open());
    return !place.Find(sandbox_).ok();
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
