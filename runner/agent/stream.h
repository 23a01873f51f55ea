// SPDX-License-Identifier: Apache-2.0
// Reads the agent's standard output while it runs, and gives log entries, the summary and the
// transcript. For run/agent_output.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/summary.h"

namespace agent {

class Dialect;
class Entries;

// Reads an agent's standard output as it comes, whatever it is: the bytes are hostile. Memory stays
// bounded: of a stream of events, a line longer than kLineBytesMax is skipped and said to be, and
// all entries take no more bytes than all lines (Entries); of any other output, a line longer than
// kWaitingBytesMax is given in pieces.
class StreamReader {
 public:
  static constexpr size_t kLineBytesMax = size_t{8} << 20;
  static constexpr size_t kWaitingBytesMax = size_t{1} << 20;

  // `stream` as in AgentPlan: "plain" passes lines through.
  explicit StreamReader(std::string_view stream);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // Returns whether the entries are the lines as they came, and so not harmless on a terminal.
  // Entries of events are visible text (codec::VisibleLine), apart from lines that are not events.
  bool verbatim() const;

  // Takes the next bytes, cut anywhere. Gives the log entries that they complete: one line each,
  // without a line end.
  std::vector<std::string> Feed(std::string_view bytes);
  // Returns, after Feed(), the beginning of a line that is too long to wait for its end, or its
  // next part; mostly empty. The next entry is the rest of it.
  std::string TakeUnfinished();
  // Called once the output has ended; gives the entries of a last line without a line end.
  std::vector<std::string> Close();
  // Judges the run. `exit_status` is the shell's way of telling: 0-255, 128+N for signal N. Partial
  // sums are given when the stream has no end (a cancelled run).
  AgentSummary Finish(int exit_status);

 private:
  std::unique_ptr<Dialect> dialect_;
  std::unique_ptr<Entries> entries_;
  std::string pending_;
  bool skipping_ = false;  // Inside a line that is too long.
};

// Leaves out the lines of an agent's output that only say again what its other lines have, before
// anything is counted or kept: pi writes the whole message so far with each of its words, which
// comes to hundreds of times the message.
class RepeatFilter {
 public:
  // `stream` as in StreamReader; most have no such lines.
  explicit RepeatFilter(std::string_view stream = "plain");

  // Takes the next bytes, cut anywhere. Returns what is left of them, until the next call; a
  // beginning that such a line could have is held back until it is known.
  std::string_view Feed(std::string_view bytes);

 private:
  enum class Line { kBegins, kStays, kGoes };

  std::string_view repeats_;
  Line line_ = Line::kBegins;
  size_t alike_ = 0;  // The bytes of the line that are those of `repeats_`.
  std::string left_;
};

}  // namespace agent
