// SPDX-License-Identifier: Apache-2.0
// Passes what a command in a lasting sandbox writes on to this program's own streams.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/stream.h"
#include "base/result.h"
#include "codec/text/neutral.h"

namespace session {

// One stream. A program that reads there gets the bytes; a person or the log of a job gets lines of
// visible text as they are completed, without the commands that this log carries out, as from
// `run` (run::ShownAt).
class CommandOutput {
 public:
  CommandOutput(int descriptor, std::optional<codec::LogCommands> shown)
      : descriptor_(descriptor), shown_(shown) {}

  // Waits until it is written.
  Status Take(std::string_view bytes);
  // Called once nothing more comes.
  Status Finish();

 private:
  void Add(const std::string& line, std::string* lines) const;

  int descriptor_;
  std::optional<codec::LogCommands> shown_;
  agent::StreamReader lines_{"plain"};
};

}  // namespace session
