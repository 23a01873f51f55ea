// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <chrono>

#include "base/sys.h"
#include "record/limits.h"
#include "record/shorthand.h"

namespace record {
namespace {

int64_t NowMs() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

bool Recorder::Record(const Event& event) {
  if (failed_) return false;
  int64_t time_ms = NowMs();
  size_t lines = lines_.size();
  json_.clear();
  AppendOcsf(event, time_ms, json_);
  AddMember(sandbox_, json_);
  lines_.append(RenderTime(time_ms)).append(" OCSF ");
  AppendShorthand(event, lines_);
  return Write(lines);
}

bool Recorder::Record(const Notice& notice) {
  if (failed_) return false;
  int64_t time_ms = NowMs();
  size_t lines = lines_.size();
  json_ = RenderOcsf(notice, time_ms);
  AddMember(sandbox_, json_);
  lines_.append(RenderTime(time_ms)).append(" OCSF ").append(RenderShorthand(notice));
  return Write(lines);
}

bool Recorder::Write(size_t lines_before) {
  if (secrets_.Finds(json_)) json_ = secrets_.Mask(json_);
  const std::string_view line = std::string_view(lines_).substr(lines_before);
  if (secrets_.Finds(line)) lines_.replace(lines_before, line.size(), secrets_.Mask(line));
  json_ += '\n';
  lines_ += '\n';
  bytes_ += json_.size() + lines_.size() - lines_before;
  failed_ = bytes_ > kRecordBytesMax || !sys::WriteAll(jsonl_.get(), json_).ok();
  if (lines_.size() >= kRecordLinesBytesMax) return Flush();
  return !failed_;
}

bool Recorder::Flush() {
  if (!lines_.empty() && !sys::WriteAll(log_.get(), lines_).ok()) failed_ = true;
  lines_.clear();
  return !failed_;
}

}  // namespace record
