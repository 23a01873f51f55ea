// SPDX-License-Identifier: Apache-2.0
// The output formats of the agents. Each Dialect turns one agent's events into log entries and a
// summary; agent/stream.h drives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/summary.h"

namespace agent {

// Collects log entries. Where control characters are made visible, a text becomes longer; all
// entries together still take no more bytes than the output that they are made of, but for
// kSpareBytes and the note that says so.
class Entries {
 public:
  static constexpr int64_t kSpareBytes = int64_t{64} << 10;

  // Makes room for the entries of a line of so many bytes.
  void Allow(size_t bytes);
  // Appends an entry. One that has no room is left out, which is said once.
  void Add(std::string entry);
  std::vector<std::string> Take() { return std::exchange(entries_, {}); }

 private:
  std::vector<std::string> entries_;
  int64_t room_ = kSpareBytes;
  bool full_ = false;
};

// Reads one agent's output line by line. Never fails: any line gives entries or none.
class Dialect {
 public:
  virtual ~Dialect() = default;
  // Returns whether log entries are the unchanged lines of the output.
  virtual bool verbatim() const { return false; }
  // Appends the log entries of one line, one line each. A line that is not an event is an entry as
  // it came; the others are visible and redacted.
  virtual void TakeLine(std::string_view line, Entries* entries) = 0;
  // Takes the beginning of a line that is too long to be read; TakeLine() is not called for it.
  virtual void TakeBeginning(std::string_view /*beginning*/) {}
  // Returns what lines begin with that only say again what other lines have; mostly empty.
  virtual std::string_view repeats() const { return {}; }
  // Judges what was read together with the exit status (0-255).
  virtual AgentSummary Finish(int exit_status) = 0;
};

// Returns the names of the dialects: "plain", and one for each agent that has its own.
std::vector<std::string_view> StreamNames();
// Makes the dialect of that name; the plain one for an unknown name.
std::unique_ptr<Dialect> MakeDialect(std::string_view stream);

// Passes lines through; exit status 0 is success.
std::unique_ptr<Dialect> MakePlainDialect();

// Returns one log entry from text an agent wrote.
std::string LogEntry(std::string_view text);
// Describes a bare exit status: "exit status 3", "killed by signal 9".
std::string DescribeStatus(int exit_status);

}  // namespace agent
