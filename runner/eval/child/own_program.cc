// SPDX-License-Identifier: Apache-2.0
#include "eval/child/own_program.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>

#include "base/exit_code.h"
#include "base/sys.h"
#include "eval/child/scratch.h"

namespace eval {
namespace {

constexpr size_t kOutputBytesMax = size_t{64} << 20;

Code CodeOfStatus(int status) {
  for (Code code : {Code::kUsage, Code::kInvalid, Code::kNotFound, Code::kUnsupported, Code::kBug,
                    Code::kTemporary, Code::kRefused, Code::kSetup}) {
    if (static_cast<int>(ExitCodeOf(code)) == status) return code;
  }
  return Code::kIo;
}

}  // namespace

Result<OwnProgram> OwnProgram::Find(const std::string& search_path) {
  std::optional<std::string> path = sys::ReadLink("/proc/self/exe");
  if (!path) return Error{Code::kIo, "/proc/self/exe cannot be read"};
  return OwnProgram(*path, search_path);
}

Result<Child> OwnProgram::Start(const std::vector<std::string>& words, const Variables& variables,
                                int log, int input) const {
  const size_t slash = path_.rfind('/');
  Child::Command command{.argv = {path_.substr(slash + 1)},
                         .environment = variables,
                         .directory = ".",
                         .input = input,
                         .log = log};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  ProgramPlaces places(path_.substr(0, slash) + ":" + search_path_, "");
  return Child::Start(places, command).Context("starting " + words.front());
}

Result<Answered> OwnProgram::Ask(const std::vector<std::string>& words, const Variables& variables,
                                 Deadline deadline) const {
  // Files, since neither of two pipes may fill while the other is read.
  Scratch scratch = TRY(Scratch::Create());
  const std::string log = scratch.path() + "/output";
  TRY(sys::WriteFile(log, ""));
  Fd file = TRY(sys::Open(log, O_WRONLY | O_APPEND));
  Child child = TRY(Start(words, variables, file.get()));
  Answered answered;
  answered.status = TRY(child.Wait(deadline));
  answered.output = TRY(sys::ReadFile(log, kOutputBytesMax));
  return answered;
}

Error ErrorOf(const Answered& answered) {
  Error error{CodeOfStatus(answered.status), ""};
  constexpr std::string_view kError = "agentic-ci: error: ";
  constexpr std::string_view kHint = "agentic-ci: hint: ";
  std::string_view rest = answered.output;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kHint)) {
      error.hint = line.substr(kHint.size());
    } else if (line.starts_with(kError)) {
      error.what = line.substr(kError.size());
      error.place = {};
    } else if (error.what.empty() && line.find(": error: ") != std::string_view::npos) {
      error.what = line;
      error.place.file = line.substr(0, line.find(':'));
    }
  }
  if (error.what.empty()) error.what = "it ended with " + std::to_string(answered.status);
  return error;
}

}  // namespace eval
