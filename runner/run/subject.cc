// SPDX-License-Identifier: Apache-2.0
#include "run/subject.h"

#include <chrono>
#include <utility>

#include "agent/description.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "forge/open/open.h"
#include "run/budget.h"
#include "run/credentials.h"
#include "run/host_proxy.h"
#include "run/run.h"
#include "run/trusted/actors.h"
#include "run/trusted/signed_event.h"

namespace run {
namespace {

constexpr std::chrono::minutes kAskingLimit{1};

// An event that is about no pull request, or does not say where its head is, leaves it to the
// workflow what to check out.
bool NamesItsHead(const forge::Event& event) {
  return event.forge == forge::ForgeKind::kNone ||
         (event.proposal_number > 0 && !event.head_sha.empty());
}

// The event alone says where the code is from; for secrets it also matters who started the run.
// Asked of the forge where there is a token to ask with.
Result<Trust> AskWhoStarted(const Request& request, const Config& config,
                            const std::optional<ForkRun>& fork, const Trust& trust, bool is_signed,
                            forge::Event& event) {
  const bool wanted = !request.secrets.empty() || !request.providers.empty();
  if (!wanted || event.forge == forge::ForgeKind::kNone) return trust;
  const forge::Facts& facts = forge::FactsOf(event.forge);
  if (facts.starter == forge::StarterProof::kSignature) {
    return request.gitlab_trust_variables ? trust : RequireSignature(event, is_signed, trust);
  }
  if (facts.starter != forge::StarterProof::kPermission) return JudgeTrust(event);  // Not trusted.
  std::string token = sys::Environment(facts.token).value_or("");
  if (token.empty()) return JudgeActors(event, trust, config.bots, nullptr, fork);
  ForgeAccess access{Secret(token), request.ca_file, HostProxy()};
  return AskForge(event, config.bots, fork, std::move(access), Deadline::After(kAskingLimit))
      .Context("asking the forge who started this run");
}

// Returns the commit that is checked out; empty without one, as on an unborn branch.
std::string HeadOf(const Checkout& checkout) {
  if (checkout.git() == nullptr) return {};
  Result<std::string> commit = checkout.git()->ResolveCommit("HEAD");
  return commit.ok() ? std::move(commit).value() : "";
}

Result<bool> VerifySignature(const Request& request, forge::Event* event) {
  const auto verify = forge::FactsOf(event->forge).verify;
  if (verify == nullptr) return false;
  return verify(sys::Environment,
                {request.gitlab_issuer, request.gitlab_keys, request.ca_file, HostProxy()}, event,
                Deadline::After(kAskingLimit));
}

// Returns what AskWhoStarted() does, for a run that may go on. Who may not start it ends it here,
// before anything else can be wrong with it: a failure that a stranger causes is never posted.
Result<Trust> Admit(const Request& request, const Subject& subject, const std::string& action,
                    const Trust& trust, bool is_signed, forge::Event& event, Recorder& recorder) {
  std::optional<ForkRun> fork;
  if (subject.config.fork_models) {
    const bool bounded = subject.budget.bounds_use() || subject.config.budget.limits.any();
    fork = ForkRun{action, HeadOf(subject.checkout), bounded};
  }
  Result<Trust> judged = AskWhoStarted(request, subject.config, fork, trust, is_signed, event);
  if (judged.ok()) recorder.Note(event, judged.value());
  const Status may_start =
      judged.ok() ? RefuseUntrusted(request, judged.value()) : Status(judged.error());
  if (may_start.ok()) return judged;
  recorder.NoteUntrusted();
  return may_start.error();
}

Status TakeChecks(const Task& task, const OptionRules& rules, Subject* subject) {
  if (!task.checks) return Ok();
  subject->checks = *task.checks;
  if (!subject->checks.timeout) return Ok();
  Request check;
  TRY(rules.set("timeout", subject->checks.timeout->text, &check));
  subject->check_timeout_s = check.timeout_s;
  return Ok();
}

}  // namespace

Result<Checkout> OpenCheckout(const std::string& workdir) {
  Checkout checkout;
  checkout.path = TRY(ResolveNamedDirectory(workdir));
  if (checkout.path == "/") {
    return Error{Code::kUsage, "the checkout cannot be the root of the file system",
                 "--workdir DIR"};
  }
  Result<change::Repository> repository = change::Repository::Open(checkout.path);
  if (repository.ok()) {
    checkout.repository = std::move(repository).value();
  } else if (repository.error().code != Code::kNotFound) {
    return std::move(repository).error();
  }
  return checkout;
}

Result<OpenedConfig> OpenConfig(const forge::Event& event, const OptionRules& rules,
                                const Request& request) {
  OpenedConfig opened;
  opened.checkout = TRY(OpenCheckout(request.workdir).Context("opening the checkout"));
  opened.ref = TRY(FindTrustedRef(event, request.policy_ref));
  opened.config =
      TRY(LoadConfig(opened.checkout.git(), opened.checkout.path, opened.ref, CheckBy(rules)));
  if (!opened.config.tasks.empty() || opened.config.absent || opened.config.fork_models) {
    opened.text = TRY(forge::ReadEventText(sys::Environment, event));
    opened.local = TRY(DescribeLocal(event, request, opened.checkout.git()));
  }
  return opened;
}

Result<Subject> TakeSubject(const forge::Event& event, OpenedConfig opened,
                            const OptionRules& rules, Request* request) {
  const Task* task = TRY(TakeTask(opened.sources(event), rules, request));
  Subject subject;
  if (task != nullptr) {
    opened.config.gates = Merge(std::move(opened.config.gates), task->gates);
    TRY(TakeChecks(*task, rules, &subject));
  }
  subject.checkout = std::move(opened.checkout);
  subject.ref = std::move(opened.ref);
  subject.config = std::move(opened.config);
  subject.described = TRY(agent::DescribeAgent(request->agent, subject.config.agents));
  subject.budget = PlanBudget(*request, subject.config);
  return subject;
}

Result<Request> ResolveRequest(Request request, const OptionRules& rules) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  OpenedConfig opened = TRY(OpenConfig(event, rules, request));
  TRY(TakeSubject(event, std::move(opened), rules, &request));
  return request;
}

Result<Trust> FindTrust(const OptionRules& rules, const Request& request) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  const bool is_signed = TRY(VerifySignature(request, &event));
  const Trust trust = JudgeTrust(event);
  if (!trust.trusted || event.forge == forge::ForgeKind::kNone) return trust;
  if (request.secrets.empty() && request.providers.empty()) return trust;
  OpenedConfig opened = TRY(OpenConfig(event, rules, request));
  return AskWhoStarted(request, opened.config, std::nullopt, trust, is_signed, event);
}

Result<Admitted> AdmitRun(const OptionRules& rules, Request* request, Recorder& recorder) {
  Admitted admitted;
  forge::Event& event = admitted.event;
  event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  Result<bool> verified = VerifySignature(*request, &event);
  if (!verified.ok()) recorder.NoteUntrusted();
  const bool is_signed = TRY(std::move(verified));
  Trust trust = JudgeTrust(event);
  if (is_signed && trust.trusted) trust.reason += ", as the job's ID token says";
  recorder.Note(event, trust);
  recorder.Phase("event");

  OpenedConfig opened = TRY(OpenConfig(event, rules, *request));
  const std::string action = opened.text.action;
  admitted.subject = TRY(TakeSubject(event, std::move(opened), rules, request));
  const bool names_its_head = NamesItsHead(event);
  recorder.NoteTask();
  admitted.trust =
      TRY(Admit(*request, admitted.subject, action, trust, is_signed, event, recorder));
  if (!names_its_head) recorder.NoteHead(HeadOf(admitted.subject.checkout));
  if (!request->task.empty()) {
    logging::Info("task chosen", {{"task", request->task}, {"agent", request->agent}});
  }
  return admitted;
}

}  // namespace run
