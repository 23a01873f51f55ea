// SPDX-License-Identifier: Apache-2.0
// Examines what this host can enforce, by starting a sandbox exactly as a run does: nothing is
// concluded from a version.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/limit/limit.h"

namespace doctor {

enum class Availability {
  kAvailable,
  kRestricted,  // There, but weaker than it could be, or refused by something that can be changed.
  kAbsent,
};

struct Mechanism {
  std::string name;
  Availability availability = Availability::kAvailable;
  std::string note;    // The basis for it, or what stands against it.
  std::string remedy;  // The command or setting that gives more; or empty.
};

struct Examination {
  std::string kernel;
  unsigned uid = 0;
  // "namespaces"; "landlock", which must be asked for; empty if no run can start.
  std::string tier;
  std::vector<Mechanism> mechanisms;
  std::optional<Error> refusal;  // Without tier namespaces: what a run ends with by default.
};

// Starts a sandbox around `directory` under `limits`, as a run would, and ends it again. That none
// can be started is an examination too; fails with kNotFound without the directory.
Result<Examination> Examine(const std::string& directory, const sandbox::SandboxLimits& limits);

// Render the examination as lines for people, and as one JSON object with the same content.
std::string RenderText(const Examination& examination);
std::string RenderJson(const Examination& examination);

}  // namespace doctor
