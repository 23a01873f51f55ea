// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_material.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "record/limits.h"
#include "record/line_facts.h"
#include "report/transcript.h"

namespace telemetry {
namespace {

constexpr size_t kEventFileBytesMax = size_t{64} << 20;

std::string ClassName(std::string name) {
  for (char& c : name) c = c == ' ' ? '_' : ascii::ToLower(c);
  return name;
}

// Returns false for a line that is not a record.
bool ParseEvent(std::string_view line, RunEvent* event) {
  std::optional<record::LineFacts> facts = record::ReadLineFacts(line);
  std::optional<record::Record> what = record::ParseOcsf(line);
  if (!facts || !what) return false;
  event->what = *std::move(what);
  event->time_ms = facts->time_ms;
  event->duration_ms = facts->duration_ms;
  event->severity = facts->severity;
  event->class_name = ClassName(std::move(facts->class_name));
  event->decision = std::move(facts->decision);
  event->scheme = std::move(facts->scheme);
  event->line = line;
  return true;
}

class Material {
 public:
  Material(const FinishedRun& run, const MaterialBounds& bounds)
      : run_(run), bounds_(bounds), material_{run.record, {}, {}, {}, {}, {}} {}

  RunMaterial Read() {
    TakePhases();
    if (run_.directory.empty()) return std::move(material_);
    const Status events = ForEachEventOf(
        run_, [this](std::string_view line, size_t check) { TakeEvent(line, check); });
    if (!events.ok()) ++material_.dropped;
    (void)report::ForEachProgram(run_.directory, [this](const report::StartedProgram& program) {
      if (material_.programs.size() < bounds_.programs_max) {
        material_.programs.push_back(program);
      } else {
        ++material_.dropped;
      }
    });
    if (!run_.line_times_ms.empty()) TakeSteps();
    return std::move(material_);
  }

 private:
  void TakePhases() {
    int64_t at = run_.record.started_at_ms;
    for (const auto& [name, ms] : run_.record.phases_ms) {
      material_.phases.push_back({name, at, at + ms});
      at += ms;
    }
  }

  // A flood of allowed requests leaves room for what was refused.
  void TakeEvent(std::string_view line, size_t check) {
    RunEvent event;
    const bool full = material_.events.size() >= bounds_.events_max ||
                      event_bytes_ + line.size() > bounds_.event_bytes_max;
    if (line.empty() || full || !ParseEvent(line, &event)) {
      ++material_.dropped;
      return;
    }
    const bool half = material_.events.size() >= bounds_.events_max / 2 ||
                      event_bytes_ > bounds_.event_bytes_max / 2;
    if (half && event.decision == "allowed") {
      ++material_.dropped;
      return;
    }
    event_bytes_ += line.size();
    event.check = check;
    material_.events.push_back(std::move(event));
  }

  int64_t TimeOf(int64_t line) const {
    const std::vector<int64_t>& times = run_.line_times_ms;
    if (times.empty()) return 0;
    return times[std::min(static_cast<size_t>(std::max<int64_t>(line, 0)), times.size() - 1)];
  }

  // A turn begins with the first step behind a tool's result.
  void TakeSteps() {
    const Result<report::Transcript> transcript = report::ReadTranscript(run_.directory);
    if (!transcript.ok()) return;
    material_.dropped += transcript.value().dropped;
    const PhaseTime* agent = material_.FindPhase("agent");
    int64_t before = agent != nullptr ? agent->start_ms : run_.record.started_at_ms;
    int64_t last_result = -1;  // The line of the last result of the open turn.
    std::vector<Turn>& turns = material_.turns;
    for (const report::TranscriptStep& step : transcript.value().steps) {
      if (turns.empty() || (last_result >= 0 && step.line > last_result)) {
        if (!turns.empty()) before = turns.back().end_ms;
        turns.push_back({before, before});
        last_result = -1;
      }
      const int64_t end_line = std::max(step.line, step.result_line);
      turns.back().end_ms = std::max(turns.back().end_ms, TimeOf(end_line));
      if (step.kind != report::TranscriptStep::Kind::kTool) continue;
      last_result = std::max(last_result, end_line);
      material_.tools.push_back({step.tool, step.text, step.result, step.failed, step.nested,
                                 TimeOf(step.line), TimeOf(end_line), turns.size() - 1});
    }
  }

  const FinishedRun& run_;
  const MaterialBounds& bounds_;
  RunMaterial material_;
  size_t event_bytes_ = 0;
};

}  // namespace

const PhaseTime* RunMaterial::FindPhase(std::string_view name) const {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [&](const PhaseTime& phase) { return phase.name == name; });
  return found != phases.end() ? &*found : nullptr;
}

Status ForEachEventOf(const FinishedRun& run,
                      const std::function<void(std::string_view line, size_t check)>& take) {
  if (run.directory.empty()) return Ok();
  for (size_t check = 0; check <= run.record.checks.size(); ++check) {
    std::string file = run.directory + "/";
    if (check > 0) file += run.record.checks[check - 1].report + "/";
    TRY(report::ForEachLine(
            file + "events.ocsf.jsonl", record::kRecordLineBytesMax, kEventFileBytesMax,
            [&](std::string_view line, bool whole) { take(whole ? line : "", check); })
            .Context("reading the events"));
  }
  return Ok();
}

RunMaterial ReadMaterial(const FinishedRun& run, const MaterialBounds& bounds) {
  return Material(run, bounds).Read();
}

}  // namespace telemetry
