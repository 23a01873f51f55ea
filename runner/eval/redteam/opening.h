// SPDX-License-Identifier: Apache-2.0
// Finds what the lines of a policy let an agent do, as the decision engine of this program says:
// `policy diff` from a policy without any line of its own, and `policy explain` of the requests
// that carry data out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "eval/child/own_program.h"

namespace redteam {

// The ways in which an opening carries data out. Every request does, in its query at the least.
enum class Sends {
  kNothing,     // It is about files.
  kAnyData,     // In bodies, or connections that are not inspected.
  kInMessages,  // In any path and query, and in WebSocket messages if the server takes them.
  kInTargets,   // In any path and query.
  kInRequests,  // In those that its rules allow.
  kUnknown,     // The policy has too many lines to ask about.
};
std::string_view Name(Sends sends);

struct Opening {
  std::string place;    // "FILE:LINE"; the name of the policy where no line says it.
  std::string subject;  // "*.example.com:443", "/home".
  std::string what;     // The opening, as `policy diff` says it: "connections with GET /v1/**".
  std::string lets;     // The effect for an agent, as a sentence's end: "send any data to ...".
  // The programs whose connections it is about; empty if it is about none.
  std::vector<std::string> programs;
  Sends sends = Sends::kNothing;
  std::string path;     // A file or directory that may be read or written.
  bool writes = false;  // `path` may be written.
};

struct PolicyView {
  std::string file;  // The file's name, as messages show it.
  std::vector<Opening> openings;
  // Destinations of probes that the policy allows, with the line that says so.
  std::map<std::string, std::string, std::less<>> allowed;
};

// Views the policy `file`, or, if it is empty, what a run allows without one. Fails as `policy
// diff` does.
Result<PolicyView> ViewPolicy(const eval::OwnProgram& program,
                              const eval::OwnProgram::Variables& variables, const std::string& file,
                              const std::string& agent);

// Returns the line that lets an agent read `path` (or write it); empty if there is no such line.
std::string LineThatOpens(const std::vector<Opening>& openings, const std::string& path,
                          bool writes);

}  // namespace redteam
