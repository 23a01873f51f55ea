// SPDX-License-Identifier: Apache-2.0
// The spelling of enumerations in run.json. One table each, read in both directions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "report/record.h"

namespace report {

template <typename Enum, size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

inline constexpr Names<OutcomeKind, 16> kOutcomeNames = {{
    {OutcomeKind::kSuccess, "success"},
    {OutcomeKind::kAgentFailed, "agent-failed"},
    {OutcomeKind::kTimedOut, "timed-out"},
    {OutcomeKind::kIdle, "idle"},
    {OutcomeKind::kLimit, "limit"},
    {OutcomeKind::kRefused, "refused"},
    {OutcomeKind::kUntrusted, "untrusted"},
    {OutcomeKind::kSkipped, "skipped"},
    {OutcomeKind::kBudget, "budget"},
    {OutcomeKind::kFindings, "findings"},
    {OutcomeKind::kInterrupted, "interrupted"},
    {OutcomeKind::kTerminated, "terminated"},
    {OutcomeKind::kSandboxLost, "sandbox-lost"},
    {OutcomeKind::kGatewayLost, "gateway-lost"},
    {OutcomeKind::kSetupFailed, "setup-failed"},
    {OutcomeKind::kCredentialRefused, "credential-refused"},
}};
inline constexpr Names<ControlState, 3> kControlNames = {{
    {ControlState::kEnforced, "enforced"},
    {ControlState::kEmulated, "emulated"},
    {ControlState::kUnavailable, "unavailable"},
}};
inline constexpr Names<FileState, 4> kFileNames = {{
    {FileState::kCreated, "created"},
    {FileState::kModified, "modified"},
    {FileState::kDeleted, "deleted"},
    {FileState::kRenamed, "renamed"},
}};
inline constexpr Names<Severity, 3> kSeverityNames = {{
    {Severity::kError, "error"},
    {Severity::kWarning, "warning"},
    {Severity::kNote, "note"},
}};
inline constexpr Names<FindingSource, 2> kSourceNames = {{
    {FindingSource::kGate, "gate"},
    {FindingSource::kAgent, "agent"},
}};

template <typename Enum, size_t N>
std::string_view NameOf(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  ENSURE(false);
  return {};
}

// Returns false and leaves `value` untouched if there is no such name.
template <typename Enum, size_t N>
bool ParseName(const Names<Enum, N>& names, std::string_view text, Enum* value) {
  for (const auto& [candidate, name] : names) {
    if (name != text) continue;
    *value = candidate;
    return true;
  }
  return false;
}

}  // namespace report
