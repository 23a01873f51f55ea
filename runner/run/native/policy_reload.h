// SPDX-License-Identifier: Apache-2.0
// Reads the file of `--policy` again on SIGUSR1, and gives the gateway the result or an empty
// policy; or takes another text in its place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gateway/gateway.h"
#include "policy/model/policy.h"
#include "run/policy_source.h"

namespace run {

// The file of `--policy`, read again while the agent runs: the person who started the run changes
// it and sends SIGUSR1. The agent can do neither: it sees no process outside its sandbox, and of
// the checkout only an overlay, and a gate refuses changes of that file (GateLimits::policy). A
// repository's policy is the one of a commit and does not change.
class PolicyReload {
 public:
  struct Rules {
    bool has_file = false;     // Without `--policy` there is nothing to read again.
    bool keeps_valid = false;  // An invalid file leaves the policy in force; else nothing passes.
  };
  // A text that comes in place of the file's.
  struct Text {
    std::string text;
    std::string shown;  // What errors call it.
  };
  using Read = std::function<Result<LoadedPolicy>(const std::optional<Text>& given)>;

  // `read` gives the policy of a text, or else the file's, as LoadPolicy does. `at_start` is what
  // the gateway and the sandbox began with; `added` of it (ecosystems) is not the file's and joins
  // each later one.
  PolicyReload(Rules rules, Read read, const LoadedPolicy& at_start,
               std::vector<policy::NetworkPolicy> added);

  // Reloads the policy and logs the result. A file with the text that is in force changes nothing,
  // and closes no connection. Fails if the gateway cannot be told.
  Status Perform(gateway::Gateway& gateway);

  // Checks a text as the file is checked, and returns its policy. Fails with kUsage where there is
  // no file whose place it can take, and as LoadPolicy does; the policy stays in force then.
  Result<LoadedPolicy> Check(gateway::Gateway& gateway, const Text& given) const;
  // Puts what was checked in force. Fails if the gateway cannot be told.
  Status Replace(gateway::Gateway& gateway, LoadedPolicy loaded);

  // Returns the last that the gateway was given.
  const policy::Policy& in_force() const { return in_force_; }

 private:
  Result<LoadedPolicy> ReadNext(const std::optional<Text>& given) const;

  Rules rules_;
  Read read_;
  policy::Policy in_force_;
  std::string sha256_;  // The hash of its file; empty if nothing passes.
  std::vector<policy::NetworkPolicy> added_;
};

}  // namespace run
