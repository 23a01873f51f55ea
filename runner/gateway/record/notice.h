// SPDX-License-Identifier: Apache-2.0
// Records that are not about a connection: the use of a model, a warning, a change of policy.
// OCSF 1.8.0 and OpenShell's shorthand, like ocsf.h. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gateway {

struct Notice {
  // API Activity (6003), Detection Finding (2004), Device Config State Change (5019), Application
  // Lifecycle (6002).
  enum class Kind { kInference, kFinding, kConfig, kLifecycle };
  enum class Severity { kInfo = 1, kLow = 2, kMedium = 3, kHigh = 4 };

  Kind kind = Kind::kFinding;
  Severity severity = Severity::kInfo;
  bool succeeded = true;
  // For kFinding "BLOCKED" or "CREATE", for kConfig the new state, "LOADED", for kLifecycle
  // "START".
  std::string activity;
  std::string title;  // For kFinding, kConfig and kLifecycle, one line on what happened.
  std::string type;   // kFinding: its kind, for machines: "budget.tokens".

  // The members for kInference.
  std::string model;
  std::string provider;  // "https://host/v1": without the operation.
  std::string method;
  std::string path;
  int64_t duration_ms = 0;

  // Further facts: text, and counts that must stay numbers.
  std::vector<std::pair<std::string, std::string>> context;
  std::vector<std::pair<std::string, int64_t>> counts;
};

std::string RenderShorthand(const Notice& notice);
// Renders one JSON object without a newline; `counts` and `context` are in `unmapped`.
std::string RenderOcsf(const Notice& notice, int64_t time_ms);

}  // namespace gateway
