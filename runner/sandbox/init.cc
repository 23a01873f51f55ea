// SPDX-License-Identifier: Apache-2.0
#include "sandbox/init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/privileges.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/control.h"
#include "sandbox/filter/seccomp.h"
#include "sandbox/landlock.h"
#include "sandbox/network/network.h"
#include "sandbox/tree.h"

namespace sandbox {
namespace {

// Leaves the sandbox's owner half of the inotify instances that Linux gives a user: those of a user
// namespace count for its owner, too. Where sysctls cannot be written, the agent may take them all.
void LeaveInotifyInstances() { (void)sys::WriteFile("/proc/sys/user/max_inotify_instances", "64"); }

std::vector<sock_filter> ReadFilter(std::string_view bytes) {
  std::vector<sock_filter> filter(bytes.size() / sizeof(sock_filter));
  bytes.copy(reinterpret_cast<char*>(filter.data()), filter.size() * sizeof(sock_filter));
  return filter;
}

class Init {
 public:
  Init(const SandboxPlan& plan, InitResources resources, AgentProcess& agent)
      : plan_(plan), resources_(std::move(resources)), agent_(agent) {}

  Status Build();
  Status StartAgent(std::string_view watched_filter);

 private:
  Status SendFd(ControlKind kind, int fd) { return agent_.SendFd(kind, fd); }
  Status BecomeSandboxUser();
  Status OpenGatewaySockets();
  Status PrepareNetworkNamespace();
  Status DropPrivileges();
  // Gives the watch over connects, where there is one.
  Result<Fd> Filter(std::string_view watched);
  Status Confine(std::string_view watched_filter);  // Runs in the agent's process.

  const SandboxPlan& plan_;
  InitResources resources_;
  AgentProcess& agent_;
};

// Ids before mounts: a mount belongs to the user that makes it.
Status Init::BecomeSandboxUser() {
  // An ordinary user's own id is the sandbox's already. Root's is not mapped here, and what
  // geteuid() says of it (65534) may be the very id that is wanted.
  if (!plan_.as_root) return Ok();
  if (::setgroups(0, nullptr) != 0) return Errno("setgroups");
  if (::setresgid(plan_.inner_gid, plan_.inner_gid, plan_.inner_gid) != 0) {
    return Errno("setresgid");
  }
  if (::setresuid(plan_.inner_uid, plan_.inner_uid, plan_.inner_uid) != 0) {
    return Errno("setresuid");
  }
  return Ok();
}

Status Init::OpenGatewaySockets() {
  Network network =
      TRY(PrepareNetwork(kProxyAddress, kProxyPort, plan_.namespaces().captured_ports));
  std::vector<GatewaySocket::Kind> kinds;
  for (const GatewaySocket& served : network.gateway_sockets) kinds.push_back(served.kind);
  TRY(agent_.Send(wire::Write(ControlKind::kNetwork, kinds, network.waiver)));
  for (const GatewaySocket& served : network.gateway_sockets)
    TRY(SendFd(ControlKind::kGatewaySocket, served.socket.get()));
  return Ok();
}

Status Init::PrepareNetworkNamespace() {
  TRY(OpenGatewaySockets());
  Fd diagnostics = OpenSocketDiagnostics();
  TRY(SendFd(ControlKind::kDiagnostics, diagnostics.get()));
  Fd sockets = OpenSocketDiagnostics();
  return SendFd(ControlKind::kSockets, sockets.get());
}

Status Init::Build() {
  if (!resources_.renews) LeaveInotifyInstances();
  TRY(BecomeSandboxUser());
  // After the ids changed, which clears it. The closed control socket says the same, later.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Errno("prctl(PR_SET_PDEATHSIG)");
  (void)::setsid();
  if (::sethostname("sandbox", 7) != 0) return NamespaceErrno("sethostname");
  if (!resources_.renews) TRY(PrepareNetworkNamespace());
  Result<Fd> segments = sys::Open("/proc/sysvipc/shm", O_RDONLY);
  TRY(SendFd(ControlKind::kSegments, segments.ok() ? segments.value().get() : -1));
  TreeLayers layers =
      TRY(BuildTree(plan_, std::move(resources_.disk), std::move(resources_.opened)));
  TRY(SendFd(ControlKind::kUpper, layers.workspace.get()));
  return SendFd(ControlKind::kLayers, layers.all.get());
}

// Drops all privileges: the rest needs no capability, and nothing that is started can ever get one.
Status Init::DropPrivileges() {
  TRY(sys::ForgoNewPrivileges());
  return sys::DropCapabilities(0);
}

Status Init::Confine(std::string_view watched_filter) {
  // Nothing else bounds a file that was deleted and is still written to.
  TRY(LimitFileSize(plan_.limits, plan_.namespaces().layers_on_disk ? plan_.limits.disk_bytes : 0));
  // Counted in this user namespace alone, the sandbox's first process with it. A cgroup, where
  // there is one, is met first: it counts what it refuses.
  if (plan_.limits.pids > 0) {
    TRY(SetLimit(RLIMIT_NPROC, static_cast<rlim_t>(plan_.limits.pids) + 1));
  }
  TRY(DropPrivileges());
  Fd ruleset = TRY(BuildLandlock(plan_.landlock, plan_.landlock_required));
  if (ruleset.valid()) TRY(sys::landlock::Restrict(ruleset.get()));
  // Landlock before seccomp: the filter forbids calls that opening the rules' paths may need.
  Fd watch = TRY(Filter(watched_filter));
  return SendFd(ControlKind::kWatch, watch.get());
}

Result<Fd> Init::Filter(std::string_view watched) {
  if (!watched.empty()) {
    Result<Fd> watch = ApplyFilter(ReadFilter(watched), Connects::kWatched);
    if (watch.ok()) return watch;
  }
  std::vector<sock_filter> filter =
      TRY(BuildFilter(Connects::kFree, resources_.processors, nullptr,
                      plan_.namespaces().owns_system ? Owners::kFaked : Owners::kKernel));
  return ApplyFilter(filter, Connects::kFree);
}

Status Init::StartAgent(std::string_view watched_filter) {
  TRY(agent_.Start([&] { return Confine(watched_filter); }));
  TRY(DropPrivileges());
  // The agent runs under the same id: it shall not look into this process.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  return SendFd(ControlKind::kStarted, -1);
}

}  // namespace

void RunInit(const SandboxPlan& plan, InitResources resources) {
  Status joined = JoinCgroups(resources.agent.groups);
  std::vector<Fd*> kept = {&resources.disk.tree};
  for (Fd& opened : resources.opened) kept.push_back(&opened);
  if (!BeginFirstProcess(&resources.agent, kept).ok()) ::_exit(1);
  int control = resources.agent.control.get();
  AgentProcess agent(plan, std::move(resources.agent));
  if (!joined.ok()) agent.Report(joined.error());
  Init init(plan, std::move(resources), agent);
  if (!joined.ok() || !Expect(control, ControlKind::kMapped)) ::_exit(1);
  Status status = init.Build();
  if (status.ok()) {
    std::string watched_filter;
    if (!Expect(control, ControlKind::kStartAgent, watched_filter)) ::_exit(1);
    status = init.StartAgent(watched_filter);
  }
  if (!status.ok()) {
    agent.Report(status.error());
    ::_exit(1);
  }
  agent.Reap();
  ::_exit(0);
}

}  // namespace sandbox
