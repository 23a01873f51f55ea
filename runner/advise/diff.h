// SPDX-License-Identifier: Apache-2.0
// `agentic-ci policy diff`: what a change to a policy opens and closes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/load/parse.h"
#include "policy/model/policy.h"

namespace advise {

// One thing that differs.
struct Difference {
  std::string subject;                // "api.example.com:443", "/opt", "landlock".
  std::string what;                   // "GET /x", "may be written", ...
  std::vector<std::string> binaries;  // The programs whose connections it concerns; may be empty.
  codec::Position at;                 // The place in the file that says it.
  std::vector<std::string> secrets;   // Credentials bound to a host it concerns.
};

// A credential and a program that may use it only after the change.
struct CredentialReach {
  std::string name;
  std::string host;
  uint16_t port = 0;
  std::string binary;
  codec::Position at;  // In the new file.
};

struct PolicyDifference {
  std::vector<Difference> opens;    // Possible only after the change.
  std::vector<Difference> closes;   // Possible only before it; places are in the old file.
  std::vector<Difference> changes;  // Differs, and is neither; or cannot be compared.
  std::vector<CredentialReach> reaches;
  std::string live_refusal;  // Why a running sandbox cannot take the change; empty if it can.

  bool empty() const { return opens.empty() && closes.empty() && changes.empty(); }
};

// A credential of the run and the one host it is bound to, in lower case.
struct BoundSecret {
  std::string name;
  std::string host;
};

// Compares what may happen, not how it is written: an endpoint that moves to another policy, or a
// list that becomes a pattern, differs only where a request is judged differently. A request is
// never called the same when it is not; what cannot be compared is among the changes.
PolicyDifference ComparePolicies(const policy::Policy& now, const policy::Policy& next,
                                 const std::vector<BoundSecret>& secrets);

// Renders the difference for people; ends with a newline. `now` and `next` are the names of the
// files.
std::string RenderDifference(const PolicyDifference& difference, const std::string& now,
                             const std::string& next);
// Renders the difference for machines, by docs/reference/schemas/policy-diff.schema.json.
std::string RenderDifferenceJson(const PolicyDifference& difference, const std::string& now,
                                 const std::string& next);

}  // namespace advise
