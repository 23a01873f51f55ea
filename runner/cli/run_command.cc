// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include "base/log.h"
#include "run/run.h"

namespace cli {

Result<run::Request> ReadRequest(const Arguments& arguments) {
  run::Request request = DefaultRequest();
  for (const RunOption& option : kRunOptions) {
    for (const std::string& text : arguments.All(option.spec.name)) {
      TRY(SetOption(option, text, &request));
    }
  }
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "unexpected '" + arguments.operands.front() + "'",
                 "agentic-ci run -- " + arguments.operands.front()};
  }
  request.command = arguments.command;
  TRY(CheckRequest(request));
  return request;
}

Result<int> RunCommand(const Arguments& arguments) {
  run::Request request = TRY(ReadRequest(arguments));
  logging::SetQuiet(request.json);
  return run::Run(request);
}

}  // namespace cli
