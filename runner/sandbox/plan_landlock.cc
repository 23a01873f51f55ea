// SPDX-License-Identifier: Apache-2.0
#include "sandbox/plan_landlock.h"

#include <algorithm>
#include <set>

#include "policy/model/own_places.h"
#include "sandbox/mask.h"
#include "sandbox/scratch_directory.h"
#include "sandbox/workdir.h"

namespace sandbox {
namespace {

class HostRules {
 public:
  HostRules(const SandboxRequest& request, const HostView& host)
      : request_(request),
        host_(host),
        places_(PlacesIn(request.scratch, host)),
        copy_(places_.checkout) {}

  Result<SandboxPlan> Plan();

 private:
  void PlanIds();
  void PlanSecrets();
  Status PlanPaths();
  void NoteAbsence(const std::string& path);
  void PlanSystem();
  Status PlanWorkspace();
  void Read(const std::string& path);
  bool IsScratchPlace(const std::string& real) const;
  std::string InCopy(const std::string& path) const;
  void Allow(std::string path, bool writable) {
    plan_.landlock.push_back({std::move(path), writable});
  }

  const SandboxRequest& request_;
  const HostView& host_;
  Places places_;
  std::string copy_;
  SandboxPlan plan_;
  std::vector<std::string> hidden_;
  std::string scratches_;  // The directory that holds the scratch directories of all runs.
};

void HostRules::PlanIds() {
  plan_.as_root = host_.free_id.has_value();
  // Root's agent gets a user of its own, which owns nothing else and has no other process.
  plan_.host_uid = host_.free_id.value_or(host_.uid);
  plan_.host_gid = host_.free_id.value_or(host_.gid);
  plan_.inner_uid = plan_.host_uid;
  plan_.inner_gid = plan_.host_gid;
  const policy::ProcessPolicy& process = request_.policy.process;
  for (const auto* name : {&process.run_as_user, &process.run_as_group}) {
    if (!*name || **name == "sandbox") continue;
    plan_.notes.push_back("the policy's run_as_user and run_as_group need tier namespaces");
    break;
  }
}

// The checkout itself is among what is hidden: the agent has a copy, without credentials of git.
void HostRules::PlanSecrets() {
  std::vector<std::string> also = request_.host_secrets;
  for (const std::string& path : request_.extra_read_only) {
    std::vector<std::string> more = InstallationSecrets(policy::CleanPath(path));
    also.insert(also.end(), more.begin(), more.end());
  }
  for (const WorkspaceFile& file : request_.repository_files) also.push_back(file.path);
  hidden_ = SecretPaths({"/"}, host_, also);
  hidden_.push_back(request_.checkout);
  scratches_ = request_.scratch.substr(0, request_.scratch.rfind('/'));
}

// Returns whether `real` is the directory that holds the scratch directories of runs, or is one of
// these or in one. Another path in that directory can be shown.
bool HostRules::IsScratchPlace(const std::string& real) const {
  return real == scratches_ || (Beneath(real, scratches_) &&
                                real.substr(scratches_.size() + 1).starts_with(kScratchPrefix));
}

// Landlock can only allow: where something below `path` is hidden, all that is beside it is
// allowed.
void HostRules::Read(const std::string& path) {
  std::string real = host_.real(path);
  if (real.empty() || IsBeneathAny(real, hidden_) || IsScratchPlace(real)) return;
  bool holds = Beneath(scratches_, real) ||
               std::any_of(hidden_.begin(), hidden_.end(),
                           [&](const std::string& secret) { return Beneath(secret, real); });
  if (!holds) return Allow(real, false);
  plan_.landlock.push_back({.path = real, .listed = true});
  for (const std::string& name : host_.list(real)) {
    std::string inside = (real == "/" ? "" : real) + "/" + name;
    if (host_.kind(inside) != PathKind::kSymlink) Read(inside);
  }
}

// Returns the path in the copy that stands for a path of the policy in the checkout.
std::string HostRules::InCopy(const std::string& path) const {
  return copy_ + path.substr(request_.checkout.size());
}

void HostRules::NoteAbsence(const std::string& path) {
  if (IsPrivate(path)) {
    std::string fault = policy::OwnPlaceFault(path);
    if (!fault.empty()) plan_.notes.push_back(path + ": not exposed: " + fault);
  } else if (!Beneath(path, request_.checkout) && host_.kind(path) == PathKind::kMissing) {
    plan_.notes.push_back(path + ": not on this host");
  } else if (IsScratchPlace(host_.real(path))) {
    plan_.notes.push_back(path + ": not exposed: it holds the scratch directories of runs; " +
                          "name a path in it instead");
  }
}

Status HostRules::PlanPaths() {
  const policy::FilesystemPolicy& filesystem = request_.policy.filesystem;
  std::set<std::string> read_only;
  for (const std::string& path : filesystem.read_only) {
    TRY(CheckRequired(request_, path, host_.kind(path)));
    NoteAbsence(path);
    if (path != "/") {
      read_only.insert(path);
      continue;
    }
    for (const std::string& name : host_.list("/")) {
      std::string top = "/" + name;
      if (!IsPrivate(top) && !IsHome(top)) read_only.insert(top);
    }
  }
  for (const std::string& path : filesystem.read_write) {
    NoteAbsence(path);
    if (IsPrivate(path) || Beneath(path, request_.checkout)) continue;
    read_only.insert(path);
    if (host_.kind(path) == PathKind::kMissing || IsScratchPlace(host_.real(path))) continue;
    plan_.notes.push_back(path + ": read-only, since tier landlock writes nothing of the host's");
  }
  // OpenShell's additions, and what else /usr means where its parts are not merged.
  for (const char* path : {"/usr", "/lib", "/etc", "/app", "/var/log", "/bin", "/sbin", "/lib32",
                           "/lib64", "/libx32"}) {
    read_only.insert(path);
  }
  std::set<std::string> installed;
  for (const std::string& path : request_.extra_read_only)
    installed.insert(policy::CleanPath(path));
  for (const std::string& path : request_.repository_directories) installed.insert(path);
  for (const std::string& path : read_only) {
    if (!IsPrivate(path) && !Beneath(path, request_.checkout)) Read(path);
  }
  for (const std::string& path : installed) Read(path);
  return Ok();
}

// Allows the system's own paths. In /proc, Landlock itself denies another process's memory,
// environment and files.
void HostRules::PlanSystem() {
  Allow("/proc", false);
  if (host_.kind(kProcessors) == PathKind::kDirectory) Allow(kProcessors, false);
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    Allow(std::string("/dev/") + name, true);
  }
  // The other end of a terminal: those of an ordinary user's other processes are the agent's
  // user's, too (sandbox/call/terminal_call.h).
  Allow("/dev/ptmx", true);
  if (plan_.as_root) Allow("/dev/pts", true);
  Allow(places_.home, true);
  Allow(places_.temporary, true);
  auto file = [&](const std::string& path, SharedText content) {
    plan_.shared_host().scratch_files.push_back({path, std::move(content)});
    Allow(path, false);
  };
  file(places_.ca_file, request_.ca_pem);
  file(places_.ca_bundle, request_.ca_bundle);
  if (request_.ca_java.present()) file(places_.ca_java, request_.ca_java);
  plan_.shared_host().home_files = request_.home_files;
}

Status HostRules::PlanWorkspace() {
  const policy::FilesystemPolicy& filesystem = request_.policy.filesystem;
  WorkdirAccess access = TRY(DecideWorkdir(filesystem, plan_.landlock, request_.checkout));
  if (access == WorkdirAccess::kByLandlock) {
    for (const auto* paths : {&filesystem.read_only, &filesystem.read_write}) {
      for (const std::string& path : *paths) {
        if (Beneath(path, request_.checkout)) {
          Allow(InCopy(path), paths == &filesystem.read_write);
        }
      }
    }
    return Ok();
  }
  plan_.shared_host().copies_checkout = access != WorkdirAccess::kEmpty;
  Allow(copy_, access == WorkdirAccess::kWritable);
  return Ok();
}

Result<SandboxPlan> HostRules::Plan() {
  plan_.tier = LandlockPlan();
  plan_.notes = request_.notes;
  PlanIds();
  PlanSecrets();
  PlanSystem();
  TRY(PlanPaths());
  TRY(PlanWorkspace());
  plan_.landlock_required = false;  // Each path on its own; the tier cannot be without Landlock.
  plan_.checkout = request_.checkout;
  plan_.shared_host().scratch = request_.scratch;
  plan_.workdir = copy_;
  plan_.workspace_files = request_.workspace_files;
  for (const std::string& path : request_.shown_empty) {
    if (path != request_.checkout && Beneath(path, request_.checkout)) {
      plan_.shared_host().not_copied.push_back(path);
    }
  }
  plan_.argv = request_.argv;
  if (Beneath(plan_.argv.front(), request_.checkout)) {
    plan_.argv.front() = InCopy(plan_.argv.front());
  }
  for (const auto& [name, value] : request_.env) plan_.env.push_back(name + "=" + value);
  plan_.limits = request_.limits;
  return std::move(plan_);
}

}  // namespace

Places PlacesIn(const std::string& scratch, const HostView& host) {
  Places places = {.home = scratch + "/home",
                   .temporary = scratch + "/tmp",
                   .ca_file = scratch + "/openshell-ca.pem",
                   .ca_bundle = scratch + "/ca-bundle.pem",
                   .ca_java = scratch + "/ca-bundle.jks",
                   .names_over_udp = false,
                   .checkout = scratch + "/checkout",
                   .host_name = host.name};
  // An id of the agent's own has no account.
  if (!host.free_id && !host.user.empty()) places.user = host.user;
  return places;
}

Result<SandboxPlan> PlanLandlock(const SandboxRequest& request, const HostView& host) {
  return HostRules(request, host).Plan();
}

}  // namespace sandbox
