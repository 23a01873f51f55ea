// SPDX-License-Identifier: Apache-2.0
// The hosts of a run for the page and the comment: refused ones first, names that differ in a part
// folded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record.h"

namespace report {

// The requests to a host that were made in one way and got one answer.
struct HostRequest {
  enum class Answer { kRefused, kFailed, kAllowed };
  Answer answer = Answer::kRefused;
  std::string text;    // "POST /v1/x", "connect"
  std::string binary;  // May be empty.
  std::string reason;  // Empty for what was allowed.
  int64_t count = 0;
};

// A host and port, or several whose names differ only in a part and that were all refused: what
// data leaving in names looks like.
struct HostGroup {
  std::string name;                // "api.example.com:443", "h{1…45}.example.com:443"
  std::vector<std::string> hosts;  // "api.example.com:443"; more than one: similar names.
  int64_t refused = 0;
  int64_t failed = 0;
  int64_t allowed = 0;
  std::vector<std::string> programs;  // Each once.
  std::vector<HostRequest> requests;  // For several hosts: those of the first.
};

// Returns every host of the report, grouped: those with refused requests first, then failed, then
// allowed. At least three names that differ in their numbers, or five with the same parent domain,
// are folded.
std::vector<HostGroup> GroupHosts(const RunRecord& record,
                                  const std::vector<AllowedRequest>& allowed);

// Returns the refused requests of hosts that are not folded: rules for the others would only help
// what may be an exfiltration.
std::vector<DeniedRequest> DenialsToAdvise(const RunRecord& record);

}  // namespace report
