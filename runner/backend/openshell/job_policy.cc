// SPDX-License-Identifier: Apache-2.0
// The part of a Job for its policy: what OpenShell cannot enforce of one, and another in its place.
#include <chrono>
#include <utility>
#include <vector>

#include "backend/openshell/job.h"
#include "base/log.h"
#include "policy/load/live_update.h"
#include "policy/model/after_untrusted.h"
#include "record/ocsf.h"
#include "record/shorthand.h"
#include "run/model_access.h"
#include "run/policy_source.h"

namespace openshell {
namespace {

// Returns the refusal of what the configuration or a policy demands and would silently not happen.
Error OnlyNative(const char* what) {
  return {Code::kUnsupported, what, "agentic-ci run --backend native"};
}

Status CheckPolicy(const policy::Policy& policy) {
  if (policy.hosted_tools.empty()) return Ok();
  return OnlyNative("hosted_tools, and that no others pass, cannot be enforced by OpenShell");
}

}  // namespace

Status Job::CheckPlan() const {
  const run::Plan& plan = stage_.plan;
  if (plan.budget.any()) return OnlyNative("a budget for models cannot be enforced by OpenShell");
  TRY(CheckPolicy(plan.policy.parsed.policy));
  if (plan.checks.scripts.empty()) return Ok();
  return OnlyNative("a task's checks run in agentic-ci's own sandboxes");
}

// Returns `policy` as `after_untrusted` narrows it: OpenShell cannot tell when a stranger's text
// reaches the model, so it counts as known from the beginning.
policy::Policy Job::Narrowed(const policy::Policy& policy) const {
  const run::Plan& plan = stage_.plan;
  if (!policy.after_untrusted.used()) return policy;
  logging::Warn(
      "after_untrusted narrows this run from the beginning: OpenShell cannot do it later");
  std::vector<policy::HostPort> models;
  std::vector<policy::HostPort> bound;
  for (const policy::ModelHost& model : run::ModelHostsOf(plan.description(), stage_.request)) {
    models.push_back({model.host, model.port});
  }
  for (const gateway::BoundSecret& secret : plan.credentials.secrets) {
    (secret.bodies_pass ? models : bound).push_back({secret.host, secret.port});
  }
  return policy::Narrow(policy, models, bound, "from the beginning");
}

Result<run::LoadedPolicy> Job::PutInForce(const std::string& text, const std::string& shown) {
  const run::Plan& plan = stage_.plan;
  run::LoadedPolicy next =
      TRY(run::LoadPolicyText(text, shown, plan.policy_context, plan.in_image()));
  policy::Policy& policy = next.parsed.policy;
  run::AddNetwork(plan.ecosystems, &policy);
  TRY(policy::CheckLiveUpdate(replaced_ ? *replaced_ : plan.policy.parsed.policy, policy));
  TRY(CheckPolicy(policy));
  TRY(sandbox_->ReplacePolicy(Narrowed(policy)));
  return next;
}

Result<std::string> Job::ReplacePolicy(const std::string& text, const std::string& shown) {
  if (stage_.request.policy_file.empty() || stage_.plan.only_reads) {
    return run::PolicyDoesNotChange();
  }
  Result<run::LoadedPolicy> next = PutInForce(text, shown);
  record::Notice notice;
  notice.kind = record::Notice::Kind::kConfig;
  notice.succeeded = next.ok();
  notice.activity = next.ok() ? "LOADED" : "FAILED";
  notice.title = next.ok() ? "policy reloaded"
                           : "policy update rejected, the last valid policy stays in force";
  if (!next.ok()) notice.severity = record::Notice::Severity::kHigh;
  notice.context = {next.ok() ? std::pair("hash", "sha256:" + next.value().record.sha256)
                              : std::pair("reason", next.error().what)};
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  TRY(Record(record::RenderOcsf(notice, now_ms), record::RenderShorthand(notice), now_ms));
  if (!next.ok()) return std::move(next).error();
  replaced_ = std::move(next.value().parsed.policy);
  return next.value().record.sha256;
}

}  // namespace openshell
