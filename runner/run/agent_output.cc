// SPDX-License-Identifier: Apache-2.0
#include "run/agent_output.h"

#include <sys/ioctl.h>

#include <chrono>

#include "base/sys.h"
#include "codec/text/neutral.h"

namespace run {

constexpr std::chrono::seconds kLastPatience{5};
constexpr std::string_view kEraseLine = "\r\x1b[2K";
constexpr size_t kColumns = 80;

AgentOutput::AgentOutput(const OutputFiles& files, const codec::SecretMask& secrets)
    : files_(files),
      secrets_(secrets),
      output_{codec::MaskedStream(secrets), agent::StreamReader(files.stream), files.raw},
      error_{codec::MaskedStream(secrets), agent::StreamReader("plain"), -1},
      terminal_(files.terminal),
      live_(files.events, files.style) {}

void AgentOutput::Take(Pipe pipe, std::string_view bytes) {
  Stream& stream = pipe == Pipe::kOutput ? output_ : error_;
  Pass(stream, stream.masked.Feed(bytes));
}

void AgentOutput::Pass(Stream& stream, std::string_view masked) {
  if (stream.raw >= 0) (void)sys::WriteAll(stream.raw, masked);
  Write(stream.reader.Feed(masked));
}

void AgentOutput::Write(const std::vector<std::string>& entries) {
  std::string lines;
  std::string shown;
  for (const std::string& entry : entries) {
    const std::string line = secrets_.Mask(entry);
    lines.append(line).append("\n");
    if (files_.style.live) shown += report::RenderAgentLine(line, files_.style);
    if (tail_.size() == kTailLinesMax) tail_.pop_front();
    tail_.push_back(codec::CutUtf8(line, kTailLineBytesMax));
  }
  // A reader that went away, or a full disk, ends neither the agent nor the record of its run.
  if (files_.readable >= 0) (void)sys::WriteAll(files_.readable, lines);
  if (terminal_ < 0) return;
  Compose(files_.style.live ? shown : lines, status_);
  Flush();
}

void AgentOutput::Compose(const std::string& lines, std::string status) {
  if (lines.empty() && status == status_) return;
  if (!status_.empty()) unshown_ += kEraseLine;
  unshown_ += lines + status;
  status_ = std::move(status);
}

void AgentOutput::Refresh(int64_t seconds) {
  if (terminal_ < 0 || !files_.style.live || full()) return;
  winsize size{};
  const bool known = ::ioctl(terminal_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::string lines = secrets_.Mask(live_.TakeLines());
  Compose(lines, live_.RenderStatus(seconds, known ? size.ws_col : kColumns));
  Flush();
}

void AgentOutput::Show(Deadline deadline) {
  if (terminal_ < 0 || unshown_.empty()) return;
  Result<size_t> written = sys::WriteWithin(terminal_, unshown_, deadline);
  if (written.ok()) {
    unshown_.erase(0, written.value());
  } else {
    terminal_ = -1;
    unshown_.clear();
  }
}

agent::AgentSummary AgentOutput::Finish(int exit_status) {
  for (Stream* stream : {&output_, &error_}) {
    Pass(*stream, stream->masked.Finish());
    Write(stream->reader.Close());
  }
  if (terminal_ >= 0 && files_.style.live) Compose(secrets_.Mask(live_.TakeLines()), "");
  // All of it is in the log, whatever the terminal has not taken by then.
  Show(Deadline::After(kLastPatience));
  agent::AgentSummary summary = output_.reader.Finish(exit_status);
  if (summary.blocked.empty()) summary.blocked = error_.reader.Finish(exit_status).blocked;
  return summary;
}

}  // namespace run
