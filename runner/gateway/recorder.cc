// SPDX-License-Identifier: Apache-2.0
#include "gateway/recorder.h"

#include <chrono>

#include "base/sys.h"
#include "gateway/limits.h"

namespace gateway {
namespace {

int64_t NowMs() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

bool Recorder::Record(const Event& event) {
  if (failed_) return false;
  int64_t time_ms = NowMs();
  return Append(RenderOcsf(event, time_ms), RenderShorthand(event), time_ms);
}

bool Recorder::Record(const Notice& notice) {
  if (failed_) return false;
  int64_t time_ms = NowMs();
  return Append(RenderOcsf(notice, time_ms), RenderShorthand(notice), time_ms);
}

bool Recorder::Append(std::string json, std::string shorthand, int64_t time_ms) {
  json += '\n';
  lines_.append(RenderTime(time_ms)).append(" OCSF ").append(shorthand).append("\n");
  bytes_ += json.size() + shorthand.size();
  failed_ = bytes_ > kRecordBytesMax || !sys::WriteAll(jsonl_.get(), json).ok();
  if (lines_.size() >= kRecordLinesBytesMax) return Flush();
  return !failed_;
}

bool Recorder::Flush() {
  if (!lines_.empty() && !sys::WriteAll(log_.get(), lines_).ok()) failed_ = true;
  lines_.clear();
  return !failed_;
}

}  // namespace gateway
