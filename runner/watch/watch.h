// SPDX-License-Identifier: Apache-2.0
// A run or a sandbox that goes on, line by line, as its records grow: for any reader, without a
// terminal. Reads the report directory; the run knows nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "session/protocol.h"

namespace watch {

// "memory: 12MiB of 4GiB"
std::string RenderLimit(const session::LimitUse& use);

class Watch {
 public:
  // `what`: a sandbox's name, or the report directory of a run. `state` tells of the sandbox of
  // that name, quickly or not at all. kNotFound: there is neither.
  using AskState = std::function<Result<session::SandboxState>(const std::string& name)>;
  static Result<Watch> Find(const std::string& what, AskState state);

  // Gives lines to `sink` as there are any, until what is watched has ended. Harmless text; an
  // Error of the sink's ends it. kIo: it ended without a report.
  using Sink = std::function<Status(std::string_view lines)>;
  Status Follow(const Sink& sink);

 private:
  Watch(std::string directory, std::string sandbox, AskState state)
      : directory_(std::move(directory)), sandbox_(std::move(sandbox)), state_(std::move(state)) {}
  Result<bool> HasEnded() const;
  Result<std::string> LookAtRequests();
  std::string LookAtLimits();
  Result<std::string> RenderEnd() const;

  std::string directory_;
  std::string sandbox_;  // Or empty.
  AskState state_;
  int64_t size_ = -1;  // Of the records, when they were read last.
  std::set<std::string> told_;
  std::map<std::string, int64_t> percent_;  // Of each limit, as it was told.
};

}  // namespace watch
