// SPDX-License-Identifier: Apache-2.0
#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>

#include "base/privileges.h"
#include "base/sys.h"

namespace sandbox {
namespace {

Status AddRule(const Fd& ruleset, const LandlockRule& rule) {
  Fd path = TRY(sys::Open(rule.path, O_PATH));
  uint64_t rights = rule.writable ? sys::landlock::kAllFiles
                    : rule.listed ? sys::landlock::kList
                                  : sys::landlock::kRead;
  return sys::landlock::Allow(ruleset, path.get(), rights).Context(rule.path);
}

}  // namespace

Result<Fd> BuildLandlock(const std::vector<LandlockRule>& rules, bool required, uint64_t network) {
  Fd ruleset = TRY(sys::landlock::CreateRuleset(network));
  if (!ruleset.valid()) {
    if (!required) return ruleset;
    return Error{Code::kUnsupported,
                 "the policy requires Landlock, which this kernel does not support",
                 "boot with lsm=landlock,... or set landlock.compatibility: best_effort"};
  }
  for (const LandlockRule& rule : rules) {
    Status added = AddRule(ruleset, rule);
    if (added.ok()) continue;
    // A path that is not there, or out of the agent's reach anyway, needs no rule.
    bool needless = added.error().code == Code::kNotFound || added.error().os_error == EACCES;
    if (!needless || required) return std::move(added).error();
  }
  return ruleset;
}

}  // namespace sandbox
