// SPDX-License-Identifier: Apache-2.0
#include "doctor/examine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/privileges.h"
#include "base/sys.h"
#include "base/user_namespace.h"
#include "codec/data/json.h"
#include "codec/text/shell_word.h"
#include "sandbox/host.h"
#include "sandbox/namespace_probe.h"
#include "sandbox/plan.h"
#include "sandbox/sandbox.h"

namespace doctor {
namespace {

using sandbox::ControlName;
using sandbox::ControlState;

// Returns what would improve a control that this host only has in part.
std::string RemedyFor(ControlName control, bool root, sandbox::Isolation isolation) {
  if (control == ControlName::kMemory || control == ControlName::kCpu) {
    bool systemd = ::access("/run/systemd/system", F_OK) == 0;
    return root || !systemd ? "" : "systemd-run --user --scope -p Delegate=yes agentic-ci run ...";
  }
  if (control == ControlName::kCapture)
    return "sudo modprobe -a nf_tables nft_tproxy nft_reject_inet nft_log";
  if (control == ControlName::kLandlock) {
    int why = 0;
    (void)sys::landlock::Abi(&why);
    return why == EOPNOTSUPP ? "boot with lsm=landlock,..." : "boot Linux 5.13 or newer";
  }
  // Tier landlock has no layers; it polls on every kernel.
  if (control == ControlName::kDisk && isolation == sandbox::Isolation::kNamespaces)
    return "Linux 6.6";
  return {};
}

Availability Of(ControlState state) {
  if (state == ControlState::kEnforced) return Availability::kAvailable;
  return state == ControlState::kEmulated ? Availability::kRestricted : Availability::kAbsent;
}

// Returns the mechanisms that a started sandbox reports.
std::vector<Mechanism> MechanismsOf(sandbox::Sandbox& sandbox, bool root,
                                    sandbox::Isolation isolation) {
  std::vector<Mechanism> mechanisms;
  for (const sandbox::Control& control : sandbox.controls()) {
    Mechanism mechanism{
        std::string(sandbox::TextOf(control.name)), Of(control.state), control.note, {}};
    if (mechanism.availability != Availability::kAvailable) {
      mechanism.remedy = RemedyFor(control.name, root, isolation);
    }
    mechanisms.push_back(std::move(mechanism));
  }
  return mechanisms;
}

// The sandbox of tier landlock, around a directory of its own.
Result<std::vector<Mechanism>> StartByLandlock(const std::string& directory,
                                               const sandbox::SandboxLimits& limits) {
  sandbox::SandboxRequest wanted;
  wanted.isolation = sandbox::Isolation::kLandlock;
  wanted.argv = {"/bin/true"};
  wanted.limits = limits;
  sandbox::HostView host = sandbox::ReadHost(directory);
  using Scratch = sandbox::ScratchDirectory;
  Scratch checkout = TRY(Scratch::Make(host.scratch_places, Scratch::Use::kFiles));
  Scratch scratch = TRY(Scratch::Make(
      host.scratch_places, host.free_id ? Scratch::Use::kEntered : Scratch::Use::kFiles));
  wanted.checkout = checkout.path();
  wanted.scratch = scratch.path();
  sandbox::SandboxPlan plan = TRY(sandbox::PlanSandbox(wanted, host));
  Fd input = TRY(sys::Open("/dev/null", O_RDONLY));
  const std::unique_ptr<sandbox::Sandbox> started = TRY(
      sandbox::Sandbox::Start(std::move(plan), std::move(input), {::getpid(), std::move(scratch)}));
  sandbox::Sandbox& sandbox = *started;
  (void)sandbox.TakeGatewaySockets();
  Status went = sandbox.StartAgent();
  if (!went.ok() && went.error().code != Code::kNotFound) return std::move(went).error();
  return MechanismsOf(sandbox, host.root, wanted.isolation);
}

// The sandbox of a policy that opens nothing, up to its agent, which ends at once. A checkout that
// a run would copy is not copied for this.
Result<std::vector<Mechanism>> StartSandbox(const std::string& directory,
                                            const sandbox::SandboxLimits& limits) {
  sandbox::SandboxRequest wanted;
  wanted.policy.filesystem.include_workdir = true;
  wanted.checkout = directory;
  wanted.probes = true;
  wanted.argv = {"/bin/true"};
  wanted.limits = limits;
  sandbox::HostView host = sandbox::ReadHost(wanted.checkout);
  std::optional<sandbox::ScratchDirectory> instead;
  if (directory == "/") {  // People ask about a host from there; it is not a checkout.
    instead.emplace(TRY(sandbox::ScratchDirectory::Make(host.scratch_places,
                                                        sandbox::ScratchDirectory::Use::kFiles)));
    wanted.checkout = instead->path();
    host = sandbox::ReadHost(wanted.checkout);
  }
  sandbox::SandboxPlan plan = TRY(sandbox::PlanSandbox(wanted, host));
  Fd input = TRY(sys::Open("/dev/null", O_RDONLY));
  const std::unique_ptr<sandbox::Sandbox> started = TRY(
      sandbox::Sandbox::Start(std::move(plan), std::move(input)).Context("starting the sandbox"));
  sandbox::Sandbox& sandbox = *started;
  (void)sandbox.TakeGatewaySockets();
  Status went = sandbox.StartAgent();
  // A host without /bin/true has shown all the same that the agent's process can be made.
  if (!went.ok() && went.error().code != Code::kNotFound) return std::move(went).error();
  std::vector<Mechanism> mechanisms = MechanismsOf(sandbox, host.root, wanted.isolation);
  for (Mechanism& mechanism : mechanisms) {
    const bool of_another = mechanism.note.find("it belongs to") != std::string::npos;
    if (mechanism.name != "checkout" || !of_another) continue;
    mechanism.remedy = "sudo chown -R $(id -u):$(id -g) " + codec::ShellArgument(directory);
  }
  bool watched = sandbox.connects().descriptor() >= 0;
  mechanisms.push_back(
      {"program identity",
       watched ? Availability::kAvailable : Availability::kRestricted,
       watched ? "every connect(2) waits until its caller is known"
               : "looked up in /proc when the gateway asks: no seccomp user notification",
       {}});
  return mechanisms;
}

// A sandbox could not be started: how far its parts go.
void AddSteps(Examination* examination) {
  Result<std::vector<sandbox::NamespaceStep>> steps = sandbox::ProbeNamespaces();
  if (!steps.ok()) return;
  for (sandbox::NamespaceStep& step : steps.value()) {
    Mechanism mechanism{std::move(step.name), Availability::kAvailable, {}, {}};
    if (step.failure != 0) {
      bool refused = step.failure == EPERM || step.failure == EACCES || step.failure == ENOSPC;
      mechanism.availability = refused ? Availability::kRestricted : Availability::kAbsent;
      mechanism.note = ::strerror(step.failure);
      mechanism.remedy = refused ? sys::NamespaceRemedy() : "";
    }
    examination->mechanisms.push_back(std::move(mechanism));
  }
}

// Adds what there is instead, if it is asked for.
void AddLandlock(Result<std::vector<Mechanism>> started, Examination* examination) {
  Mechanism tier{"tier landlock", Availability::kAvailable, {}, {}};
  if (!started.ok()) {
    tier.availability = Availability::kAbsent;
    tier.note = started.error().what;
    tier.remedy = started.error().hint;
    examination->mechanisms.push_back(std::move(tier));
    return;
  }
  examination->tier = "landlock";
  examination->mechanisms.push_back(std::move(tier));
  for (Mechanism& mechanism : started.value()) {
    examination->mechanisms.push_back(std::move(mechanism));
  }
}

std::string_view Name(Availability availability) {
  switch (availability) {
    case Availability::kAvailable:
      return "available";
    case Availability::kRestricted:
      return "restricted";
    case Availability::kAbsent:
      break;
  }
  return "absent";
}

std::string Pad(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

Result<Examination> Examine(const std::string& directory, const sandbox::SandboxLimits& limits) {
  Examination examination;
  utsname host{};
  if (::uname(&host) == 0) examination.kernel = host.release;
  examination.uid = ::geteuid();
  std::string checkout = TRY(sys::RealPath(directory).Context("looking at the checkout"));
  Result<std::vector<Mechanism>> mechanisms = StartSandbox(checkout, limits);
  if (mechanisms.ok()) {
    examination.tier = "namespaces";
    examination.mechanisms = std::move(mechanisms).value();
  } else {
    examination.refusal = std::move(mechanisms).error();
    AddSteps(&examination);
    AddLandlock(StartByLandlock(checkout, limits), &examination);
  }
  return examination;
}

std::string RenderText(const Examination& examination) {
  constexpr size_t kNameColumns = 18;
  std::string text =
      "kernel " + examination.kernel + ", user " + std::to_string(examination.uid) + "\n";
  for (const Mechanism& mechanism : examination.mechanisms) {
    text += Pad(std::string(Name(mechanism.availability)), 12) + Pad(mechanism.name, kNameColumns) +
            (mechanism.note.empty() ? "" : "  ") + mechanism.note + "\n";
    if (!mechanism.remedy.empty()) text += Pad("", 12) + "for more: " + mechanism.remedy + "\n";
  }
  if (!examination.refusal) return text + "tier " + examination.tier + ": runs can start here\n";
  if (!examination.tier.empty()) {
    return text +
           "tier landlock: runs can start here with --isolation landlock; without it, a run "
           "ends with: " +
           examination.refusal->what + "\n";
  }
  return text + "no tier: a run ends with: " + examination.refusal->what + "\n";
}

std::string RenderJson(const Examination& examination) {
  codec::Json object;
  object.Set("kernel", examination.kernel);
  object.Set("uid", static_cast<int64_t>(examination.uid));
  object.Set("tier", examination.tier);
  codec::Json mechanisms = codec::Json::EmptyArray();
  for (const Mechanism& mechanism : examination.mechanisms) {
    codec::Json entry;
    entry.Set("name", mechanism.name);
    entry.Set("availability", std::string(Name(mechanism.availability)));
    entry.Set("note", mechanism.note);
    entry.Set("remedy", mechanism.remedy);
    mechanisms.Push(std::move(entry));
  }
  object.Set("mechanisms", std::move(mechanisms));
  object.Set("error", examination.refusal ? examination.refusal->what : "");
  return codec::RenderJson(object);
}

}  // namespace doctor
