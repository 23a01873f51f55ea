// SPDX-License-Identifier: Apache-2.0
// `agentic-ci eval redteam`: a scripted hostile agent against a policy and a host, without a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "eval/redteam/judge.h"
#include "eval/redteam/opening.h"

namespace redteam {

struct Plan {
  std::string policy;             // A file; if empty, what a run allows without one.
  std::string agent = "command";  // The agent whose model's host `defaults: minimal` opens.
  std::string workdir;            // An absolute path.
  bool in_image = false;  // True if `options` name an image, in which the checkout is not shown.
  std::string report;     // The directory for the run's report; empty if it is not kept.
  std::vector<std::string> options;  // For `run`, as on its command line.
  // The environment of the run, and PATH.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string search_path;
  // Variables of `environment` that hold credentials, in whose place the run gets a canary.
  std::vector<std::string> credentials;
};

struct Results {
  PolicyView policy;
  std::string tier;
  uint32_t user = 0;  // The runner's id.
  // Controls that run.json does not call enforced and what could not be tried, with notes.
  std::vector<std::string> weaker;
  std::vector<Judged> probes;
  int64_t ms = 0;
};

// Returns the files that the agent tries to read: those in which programs keep credentials, of the
// host and, if `home` is not empty, in that directory. Not all of them exist.
std::vector<std::string> CredentialFiles(const std::string& home);

// Runs the agent once in the sandbox and, as the control, once outside, where it tries only what
// stays on this machine. Fails as the run does where no sandbox starts, and with kTemporary when
// either does not end.
Result<Results> RunRedteam(const Plan& plan);

// Returns how many probes have that standing.
size_t Count(const Results& results, Standing standing);
// Returns whether nothing got through that neither the policy nor the tier explains, and all is
// decided.
bool Holds(const Results& results);

}  // namespace redteam
