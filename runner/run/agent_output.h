// SPDX-License-Identifier: Apache-2.0
// Carries the agent's output to its files, the terminal and the summary: masked before anything
// reads it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/stream.h"
#include "agent/summary.h"
#include "base/deadline.h"
#include "codec/data/secret_mask.h"
#include "codec/text/neutral.h"
#include "forge/open/log_section.h"
#include "report/terminal/live_view.h"

namespace run {

// The files that receive the agent's output while it runs. Borrowed.
struct OutputFiles {
  int raw = -1;       // agent.jsonl; -1 if the agent writes no stream of events.
  int readable = -1;  // agent.log
  int terminal = -1;  // Standard output, or where else the agent's output is shown.
  // Set for a person or the log of a job: lines are visible text, cut if they are long, without the
  // commands that this log carries out. nullopt if a program reads there; it gets the agent's
  // bytes.
  std::optional<codec::LogCommands> shown = codec::LogCommands::kAll;
  report::TerminalStyle style = {};
  forge::LogSection section = {};  // Around what is shown, for a log that folds it.
  std::string events = {};         // The gateway's records, for the style that shows them.
  // The agent is Codex, or a command that names it: lines of its log mean what they say.
  bool may_be_codex = false;
  bool timed = false;            // AgentOutput::TakeLineTimes() has something to give.
  std::string stream = "plain";  // The form in which standard output is read (agent::StreamReader).
};

// OutputFiles::shown for this descriptor and environment. A regular file is not the log of a job.
std::optional<codec::LogCommands> ShownAt(int descriptor);

// The agent's output, from its two pipes to the files, the terminal and the summary: masked as it
// arrives, before it is parsed, and each line again after JSON and terminal escapes are removed.
// Never waits for the terminal's reader, except for a few seconds at the end.
//
// The order within each pipe is kept. Lines of both are written whole, in the order in which they
// were read, which is not known to be the order in which they were written; only a line of more
// than agent::StreamReader::kWaitingBytesMax can be broken off by one from the other pipe.
class AgentOutput {
 public:
  enum class Pipe { kOutput, kError };

  // `files` and `secrets` outlive this; `secrets` may grow.
  AgentOutput(const OutputFiles& files, const codec::SecretMask& secrets);

  void Take(Pipe pipe, std::string_view bytes);
  // Returns the terminal's descriptor while lines wait for it: poll(2) it for POLLOUT and call
  // Flush. Returns -1 if none are left.
  int waiting_terminal() const { return unshown_.empty() ? -1 : terminal_; }
  // Returns true if so many lines wait that no more output should be taken.
  bool full() const { return unshown_.size() >= kUnshownBytesMax; }
  // Gives the terminal what it takes at once.
  void Flush() { Show(Deadline::After({})); }

  // Shows, on a terminal, requests that were judged meanwhile, and the line at the bottom.
  void Refresh(int64_t seconds);

  // Judges the run, once both have ended. `exit_status` is as in agent::StreamReader::Finish.
  agent::AgentSummary Finish(int exit_status);
  // Returns true if some of the output could not be written to a file.
  bool lost() const { return lost_; }
  // Returns when each line of OutputFiles::raw came, in milliseconds since 1970, at most
  // kTimedLinesMax.
  static constexpr size_t kTimedLinesMax = 100'000;
  std::vector<int64_t> TakeLineTimes() { return std::move(line_times_ms_); }
  // Returns the last kTailLinesMax lines of the log.
  std::vector<std::string> tail() const { return {tail_.begin(), tail_.end()}; }

 private:
  static constexpr size_t kTailLinesMax = 40;
  static constexpr size_t kTailLineBytesMax = 500;
  static constexpr size_t kUnshownBytesMax = size_t{256} << 10;

  struct Stream {
    codec::MaskedStream masked;
    agent::StreamReader reader;
    int raw;
    bool in_line = false;  // True if what came last was not the end of a line.
  };
  // Pieces of lines, ready for where they go.
  struct Lines {
    std::string kept;   // The agent's bytes, without secrets.
    std::string shown;  // For OutputFiles::shown.
  };
  void NoteTimes(std::string_view raw);
  void Pass(Stream& stream, std::string_view masked);
  void Add(Stream& stream, const std::string& text, bool ends, Lines* lines);
  void AddShown(const std::string& visible, std::string* shown) const;
  void Write(const Lines& lines);
  void Show(Deadline deadline);
  // Puts lines above the status, or a new status below everything.
  void Compose(const std::string& lines, std::string status);

  const OutputFiles& files_;
  const codec::SecretMask& secrets_;
  Stream output_;
  Stream error_;
  const Stream* unfinished_ = nullptr;  // The stream whose line the log ends in.
  std::deque<std::string> tail_;
  int terminal_;
  report::LiveView live_;
  bool lost_ = false;
  std::vector<int64_t> line_times_ms_;
  bool in_timed_line_ = false;  // The last of them has not ended.
  bool in_section_ = false;     // Something was shown.
  std::string status_;          // The text at the bottom, without a line end.
  std::string unshown_;
};

}  // namespace run
