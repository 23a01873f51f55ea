// SPDX-License-Identifier: Apache-2.0
// Renders what a person at a terminal sees of a run while it goes on. Pipes and CI get log lines
// instead.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "report/record.h"

namespace report {

struct TerminalStyle {
  bool live = false;    // Standard output and standard error are a terminal that can go back.
  bool colour = false;  // And NO_COLOR (no-color.org) is not set.
};
// Finds the style from the two descriptors, TERM and NO_COLOR.
TerminalStyle FindTerminalStyle();

// Every byte that a run's agent, policy or event may have chosen is made neutral in these: escape
// sequences are ours alone. Each is one line, with its end, unless it says otherwise.

// Renders the start: "● policy main@6d05064 · sandbox 8 ms · 11 of 11 controls enforced".
std::string RenderStart(const RunRecord& record, const TerminalStyle& style);
// Renders the end in several lines: what refused the changes, the figures, and a link to the page
// in `directory`.
std::string RenderEnd(const RunRecord& record, const std::string& directory,
                      const TerminalStyle& style);
// Renders a line of the agent, distinguished from this program's by the bar in front. `entry` is
// neutral already.
std::string RenderAgentLine(std::string_view entry, const TerminalStyle& style);

// Follows the gateway's records while it writes them.
class LiveView {
 public:
  // `events` is events.ocsf.jsonl. Follows nothing unless the style is live and the file can be
  // read.
  LiveView(const std::string& events, const TerminalStyle& style);

  // Lines for the requests that were judged since the last call: each different one once, at most
  // 200 in all. Reads at most 256 KiB a call.
  std::string TakeLines();
  // Renders the status: "8 allowed, 3 refused | 12 s", without a line end, at most `columns` wide.
  std::string RenderStatus(int64_t seconds, size_t columns) const;

 private:
  std::string TakeRecord(std::string_view line);

  TerminalStyle style_;
  Fd events_;
  std::string pending_;
  std::set<std::string> seen_;
  int64_t allowed_ = 0;
  int64_t refused_ = 0;
};

}  // namespace report
