// SPDX-License-Identifier: Apache-2.0
#include "gateway/recorder.h"

#include <chrono>

#include "base/sys.h"
#include "gateway/limits.h"

namespace gateway {

bool Recorder::Record(const Event& event) {
  if (failed_) return false;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  std::string json = RenderOcsf(event, time_ms) + "\n";
  std::string line = RenderTime(time_ms) + " OCSF " + RenderShorthand(event) + "\n";
  bytes_ += json.size() + line.size();
  failed_ = bytes_ > kRecordBytesMax || !sys::WriteAll(jsonl_.get(), json).ok() ||
            !sys::WriteAll(log_.get(), line).ok();
  return !failed_;
}

}  // namespace gateway
