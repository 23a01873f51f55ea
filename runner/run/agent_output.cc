// SPDX-License-Identifier: Apache-2.0
#include "run/agent_output.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "forge/open/open.h"

namespace run {
namespace {

constexpr std::chrono::seconds kLastPatience{5};
constexpr std::string_view kEraseLine = "\r\x1b[2K";
constexpr size_t kColumns = 80;
constexpr size_t kShownLineBytesMax = 2000;

}  // namespace

std::optional<codec::LogCommands> ShownAt(int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) return std::nullopt;
  if (std::optional<codec::LogCommands> log = forge::LogCommandsOf(sys::Environment)) return log;
  if (::isatty(descriptor) == 1) return codec::LogCommands::kNone;
  return std::nullopt;
}

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

// A line came when its first byte did.
void AgentOutput::NoteTimes(std::string_view raw) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  while (!raw.empty() && line_times_ms_.size() < kTimedLinesMax) {
    if (!in_timed_line_) line_times_ms_.push_back(duration_cast<milliseconds>(now).count());
    const size_t end = raw.find('\n');
    in_timed_line_ = end == std::string_view::npos;
    raw.remove_prefix(in_timed_line_ ? raw.size() : end + 1);
  }
}

void AgentOutput::Pass(Stream& stream, std::string_view masked) {
  if (stream.raw >= 0 && files_.timed) NoteTimes(masked);
  if (stream.raw >= 0 && !sys::WriteAll(stream.raw, masked).ok()) lost_ = true;
  Lines lines;
  for (const std::string& entry : stream.reader.Feed(masked)) Add(stream, entry, true, &lines);
  const std::string beginning = stream.reader.TakeUnfinished();
  if (!beginning.empty()) Add(stream, beginning, false, &lines);
  Write(lines);
}

void AgentOutput::Add(Stream& stream, const std::string& text, bool ends, Lines* lines) {
  std::string kept = secrets_.Mask(codec::RedactTokens(text));
  std::string visible = codec::VisibleLine(kept, SIZE_MAX);
  // A terminal shows what its escapes hide from a search.
  if (visible != kept) {
    std::string searched = secrets_.Mask(codec::RedactTokens(visible));
    if (searched != visible) {
      kept = codec::CutUtf8(searched, kept.size());  // The log takes no more than the output.
      visible = std::move(searched);
    }
  }
  if (unfinished_ != nullptr && unfinished_ != &stream) lines->kept += '\n';
  lines->kept += kept;
  if (ends) lines->kept += '\n';
  unfinished_ = ends ? nullptr : &stream;
  if (std::exchange(stream.in_line, !ends)) return;  // Its beginning was shown.
  if (tail_.size() == kTailLinesMax) tail_.pop_front();
  tail_.push_back(codec::NeutralLine(visible, kTailLineBytesMax));
  if (files_.shown) AddShown(visible, &lines->shown);
}

void AgentOutput::AddShown(const std::string& visible, std::string* shown) const {
  std::string line = codec::WithoutCommands(visible, *files_.shown);
  if (line.size() > kShownLineBytesMax) {
    line = codec::CutUtf8(line, kShownLineBytesMax);
    line += files_.readable >= 0 ? " (cut; agent.log has the whole line)" : " (cut)";
  }
  *shown += files_.style.live ? report::RenderAgentLine(line, files_.style) : line + "\n";
}

void AgentOutput::Write(const Lines& lines) {
  // A reader that went away, or a full disk, ends neither the agent nor the record of its run,
  // which says that the log is not whole.
  if (files_.readable >= 0 && !sys::WriteAll(files_.readable, lines.kept).ok()) lost_ = true;
  if (terminal_ < 0) return;
  if (!lines.shown.empty() && !std::exchange(in_section_, true)) unshown_ += files_.section.begin;
  Compose(files_.shown ? lines.shown : lines.kept, status_);
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
    Lines lines;
    for (const std::string& entry : stream->reader.Close()) {
      Add(*stream, entry, !stream->reader.verbatim(), &lines);
    }
    Write(lines);
  }
  if (terminal_ >= 0 && files_.style.live) Compose(secrets_.Mask(live_.TakeLines()), "");
  if (in_section_) unshown_ += files_.section.end;
  // All of it is in the log, whatever the terminal has not taken by then.
  Show(Deadline::After(kLastPatience));
  agent::AgentSummary summary = output_.reader.Finish(exit_status);
  if (summary.blocked.empty()) summary.blocked = error_.reader.Finish(exit_status).blocked;
  if (!files_.may_be_codex) summary.blocked.clear();
  return summary;
}

}  // namespace run
