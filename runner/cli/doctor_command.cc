// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/output.h"
#include "doctor/examine.h"

namespace cli {

Result<int> DoctorCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "doctor takes no operands", "agentic-ci doctor --help"};
  }
  // One of each kind: whether they can be enforced is the question, not how large they are.
  sandbox::SandboxLimits limits{.memory_bytes = int64_t{1} << 30,
                                .cpus = 1,
                                .pids = 1024,
                                .disk_bytes = int64_t{8} << 30,
                                .cpu_s = 60};
  for (const sandbox::ProcessLimitRow& row : sandbox::kProcessLimits) limits.*row.member = 1 << 20;
  doctor::Examination found = TRY(doctor::Examine(arguments.Get("workdir", "."), limits));
  std::string text = arguments.Has("json") ? doctor::RenderJson(found) : doctor::RenderText(found);
  if (!arguments.Has("json") && !found.tier.empty()) {
    text += "to see what it stops: agentic-ci eval redteam\n";
  }
  TRY(PrintLines(text));
  if (found.tier.empty()) return std::move(*found.refusal);
  return 0;
}

}  // namespace cli
