// SPDX-License-Identifier: Apache-2.0
// What a sandbox tells, as JSON: for `--json` of the commands and for the protocol alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "codec/data/json.h"
#include "report/denials.h"
#include "session/client.h"
#include "session/snapshot/snapshot.h"

namespace serve {

// How a command ended.
struct EndForm {
  const char* name;     // "exit", "timeout".
  const char* warning;  // Null where the status is the command's own.
  ExitCode code;        // Otherwise, the status of agentic-ci.
};
// What another version may say counts as the last form, "cancelled".
const EndForm& FormOf(session::EndReason reason);

// What a command wrote.
struct Written {
  std::string output;
  std::string error;
};
codec::Json JsonOf(const session::CommandResult& result, const std::optional<Written>& written);
codec::Json JsonOf(const std::vector<session::FileChange>& changes);
codec::Json JsonOf(const session::Facts& facts);
// Adds the members of a state to those of its sandbox.
void AddState(const session::SandboxState& state, codec::Json* json);
codec::Json JsonOf(const session::LimitUse& use);
codec::Json JsonOf(const session::PastCommand& past);
codec::Json JsonOf(const session::Diff& diff);
// `directory` is the layout that it was written to.
codec::Json JsonOf(const session::WrittenSnapshot& written, const std::string& directory);
// The requests that were refused, each with the line of a policy that would allow it.
codec::Json JsonOf(const std::vector<report::DeniedRequest>& denials);

}  // namespace serve
