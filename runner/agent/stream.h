// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/summary.h"

namespace agent {

class Dialect;

// Reads an agent's standard output as it comes, whatever it is: the bytes are hostile. Memory stays
// bounded: a line longer than kLineBytesMax is skipped and said to be.
class StreamReader {
 public:
  static constexpr size_t kLineBytesMax = size_t{8} << 20;

  // `stream` as in AgentPlan: "plain" passes lines through.
  explicit StreamReader(std::string_view stream);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // Takes the next bytes, cut anywhere. Gives the log entries that they complete: one line each,
  // already neutral for a terminal and a CI log, without a line end.
  std::vector<std::string> Feed(std::string_view bytes);
  // The output has ended: gives the entries of a last line without a line end.
  std::vector<std::string> Close();
  // Judges the run. `exit_status` is the shell's way of telling: 0-255, 128+N for signal N. Partial
  // sums are given when the stream has no end (a cancelled run).
  AgentSummary Finish(int exit_status);

 private:
  std::unique_ptr<Dialect> dialect_;
  std::string pending_;
  bool skipping_ = false;  // Inside a line that is too long.
};

}  // namespace agent
