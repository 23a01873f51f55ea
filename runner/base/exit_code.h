// SPDX-License-Identifier: Apache-2.0
// The only list of exit codes; docs/reference/exit-codes.md is generated from it.
#pragma once

#include <array>
#include <string_view>

#include "base/result.h"

// The numbers of sysexits(3) where one fits; 124 and 125 as timeout(1) has them; 128 + signal.
enum class ExitCode : int {
  kOk = 0,
  kAgentStatusMax = 63,
  kUsage = 64,
  kInvalid = 65,
  kNotFound = 66,
  kUnsupported = 69,
  kBug = 70,
  kIo = 74,
  kTemporary = 75,
  kRefused = 77,
  kSetup = 78,
  kFindings = 79,
  kTimedOut = 124,
  kLimit = 125,
  kInterrupted = 130,
  kTerminated = 143,
};

struct ExitCodeDoc {
  std::string_view status;  // "64", or a range: "1-63".
  std::string_view meaning;
};

inline constexpr auto kExitCodes = std::to_array<ExitCodeDoc>({
    {"0",
     "The agent exited with 0 and the report was written, or there was nothing to do; for other "
     "commands: success."},
    {"1-63",
     "The agent's own exit status. Values above 63 are reported as 63, with the actual value in "
     "`run.json`."},
    {"64", "Usage error: an unknown command or option, or an invalid combination."},
    {"65", "Invalid data: a malformed policy, configuration, test table, event or report."},
    {"66", "A named input does not exist."},
    {"69", "This host cannot provide the requested isolation."},
    {"70", "A bug in agentic-ci."},
    {"74", "An I/O error, or the sandbox or the gateway was killed."},
    {"75",
     "A temporary failure: the model, the registry or the forge was unreachable after retries, or "
     "another process fills the same results."},
    {"77",
     "Refused: an image is not trusted, the checkout cannot be looked through for credentials, a "
     "gate or a task's check rejected the changes, a budget across runs is used up, a policy "
     "denied "
     "the request, or the forge denied permission."},
    {"78",
     "Setup error: a missing token, a token that the model rejects, an unknown provider, or a cost "
     "limit with a model whose price is unknown."},
    {"79",
     "The agent reported findings that the task's `fail_on`, or `--fail-on`, does not accept."},
    {"124", "The time limit or the idle limit ended the run."},
    {"125",
     "Another limit ended the run: memory, disk, processes, output, a budget, or the CPU time of "
     "agentic-ci itself. `run.json` names it."},
    {"130", "Interrupted (SIGINT)."},
    {"143", "Terminated (SIGTERM)."},
});

// The one place where a kind of failure becomes a status.
constexpr ExitCode ExitCodeOf(Code code) {
  switch (code) {
    case Code::kUsage:
      return ExitCode::kUsage;
    case Code::kInvalid:
      return ExitCode::kInvalid;
    case Code::kNotFound:
      return ExitCode::kNotFound;
    case Code::kUnsupported:
      return ExitCode::kUnsupported;
    case Code::kIo:
      return ExitCode::kIo;
    case Code::kTemporary:
      return ExitCode::kTemporary;
    case Code::kRefused:
      return ExitCode::kRefused;
    case Code::kSetup:
      return ExitCode::kSetup;
    case Code::kNothingToDo:
      return ExitCode::kOk;
    case Code::kBug:
      return ExitCode::kBug;
  }
  return ExitCode::kBug;
}
