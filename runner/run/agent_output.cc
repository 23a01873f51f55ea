// SPDX-License-Identifier: Apache-2.0
#include "run/agent_output.h"

#include "base/sys.h"
#include "codec/text/neutral.h"

namespace run {

AgentOutput::AgentOutput(const std::string& agent_name, const OutputFiles& files,
                         const codec::SecretMask& secrets)
    : files_(files),
      secrets_(secrets),
      output_{codec::MaskedStream(secrets), agent::StreamReader(agent_name), files.raw},
      error_{codec::MaskedStream(secrets), agent::StreamReader("command"), -1} {}

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
  for (const std::string& entry : entries) {
    const std::string line = secrets_.Mask(entry);
    lines.append(line).append("\n");
    if (tail_.size() == kTailLinesMax) tail_.pop_front();
    tail_.push_back(codec::CutUtf8(line, kTailLineBytesMax));
  }
  // A reader that went away, or a full disk, ends neither the agent nor the record of its run.
  if (files_.readable >= 0) (void)sys::WriteAll(files_.readable, lines);
  if (files_.terminal >= 0) (void)sys::WriteAll(files_.terminal, lines);
}

agent::AgentSummary AgentOutput::Finish(int exit_status) {
  for (Stream* stream : {&output_, &error_}) {
    Pass(*stream, stream->masked.Finish());
    Write(stream->reader.Close());
  }
  agent::AgentSummary summary = output_.reader.Finish(exit_status);
  if (summary.blocked.empty()) summary.blocked = error_.reader.Finish(exit_status).blocked;
  return summary;
}

}  // namespace run
