// SPDX-License-Identifier: Apache-2.0
// A run or a sandbox that goes on, as its records grow. Reads the report directory, and asks a
// sandbox; the run knows nothing of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "report/denials.h"
#include "session/client.h"
#include "session/protocol.h"

namespace watch {

// The result of one look.
struct Look {
  std::optional<report::DenialList> requests;  // All of them, if there are new ones.
  // The state of a sandbox that had the time to answer.
  std::optional<session::SandboxState> state;
  session::ChangedFiles files;  // Since the look before.
};

class Watch {
 public:
  // Finds what to watch: `what` is a sandbox's name, or the report directory of a run. `state`
  // returns the state of the sandbox of that name, quickly or not at all. Fails with kNotFound if
  // there is neither.
  using AskState = std::function<Result<session::SandboxState>(const std::string& name)>;
  static Result<Watch> Find(const std::string& what, AskState state);

  // Gives looks to `reader`, which takes its time, until what is watched has ended. Returns false
  // if the reader wants no more. `rest` is the time to wait before the next look.
  using Reader = std::function<Result<bool>(Look look, std::chrono::milliseconds rest)>;
  Result<bool> Follow(const Reader& reader);

  // Renders how it ended, as lines of harmless text. Fails with kIo without a report.
  Result<std::string> RenderEnd() const;

 private:
  Watch(std::string directory, std::string sandbox, bool asks_files, AskState state)
      : directory_(std::move(directory)),
        sandbox_(std::move(sandbox)),
        asks_files_(asks_files),
        state_(std::move(state)) {}
  Result<bool> HasEnded() const;
  Result<std::optional<report::DenialList>> LookAtRequests();
  session::ChangedFiles LookAtFiles();

  std::string directory_;
  std::string sandbox_;  // Or empty.
  int64_t keeper_ = 0;   // Its process: another has the name of one that is created anew.
  bool asks_files_;      // Its backend tells what changes.
  AskState state_;
  int64_t size_ = -1;  // The size of the records when they were read last.
  std::optional<session::FileWatch> files_;
  Deadline files_rest_ = Deadline::After(std::chrono::milliseconds{0});
};

}  // namespace watch
