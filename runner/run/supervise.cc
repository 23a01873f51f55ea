// SPDX-License-Identifier: Apache-2.0
#include "run/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "agent/stream.h"
#include "base/deadline.h"
#include "base/sys.h"
#include "gateway/connection_owners.h"

namespace run {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How often memory is looked at where no cgroup counts it. An agent that allocates faster than it
// can be watched meets the host's own limit; docs/threat-model.md says so.
constexpr milliseconds kWatchInterval{200};
constexpr size_t kChunkBytes = 65536;

class Supervisor {
 public:
  Supervisor(sandbox::Sandbox& sandbox, gateway::Gateway& gateway,
             gateway::ConnectionOwners& owners, PolicyReload& reload, int identity, int signals,
             const Request& request, const OutputFiles& files)
      : sandbox_(sandbox),
        gateway_(gateway),
        owners_(owners),
        reload_(reload),
        identity_(identity),
        signals_(signals),
        request_(request),
        files_(files),
        output_(request.agent),
        error_("command"),
        started_(Deadline::Clock::now()),
        wall_(Deadline::After(seconds(request.timeout_s))),
        idle_(NextIdle()),
        memory_(NextMemory()) {}

  Result<AgentEnd> Watch();

 private:
  enum Source {
    kOutput,
    kError,
    kEnded,
    kConnect,
    kIdentity,
    kNews,
    kGateway,
    kSignals,
    kSourceCount
  };

  Status Turn();
  Status Read(int fd, agent::StreamReader& reader, int raw, bool* open);
  void Write(const std::vector<std::string>& entries);
  bool Pass(const sandbox::Connect& connect);
  void TakeConnect(short events);
  // Reads on in the executables that calls and questions wait for, a piece each turn.
  void Verify();
  bool verifying() const { return !connects_.empty() || owners_.pending(); }
  void TakeNews();
  void TakeSignal();
  void CheckLimits();
  void End(EndKind kind) {
    if (!end_) end_ = kind;
  }
  Deadline NextIdle() const {
    if (request_.idle_timeout_s == 0) return Deadline::Never();
    return Deadline::After(seconds(request_.idle_timeout_s));
  }
  Deadline NextMemory() const {
    if (sandbox_.cgroup().enforces("memory")) return Deadline::Never();
    return Deadline::After(kWatchInterval);
  }

  sandbox::Sandbox& sandbox_;
  gateway::Gateway& gateway_;
  gateway::ConnectionOwners& owners_;
  PolicyReload& reload_;
  int identity_;
  int signals_;
  const Request& request_;
  const OutputFiles& files_;
  agent::StreamReader output_;
  agent::StreamReader error_;
  Deadline::Clock::time_point started_;
  Deadline wall_;
  Deadline idle_;
  Deadline memory_;  // When it is looked at next.
  bool output_open_ = true;
  bool error_open_ = true;
  int64_t output_bytes_ = 0;
  std::vector<sandbox::Connect> connects_;  // They wait for Verify().
  std::optional<EndKind> end_;
  std::optional<int> wait_status_;
  std::string refused_by_;
};

void Supervisor::Write(const std::vector<std::string>& entries) {
  std::string lines;
  for (const std::string& entry : entries) lines.append(entry).append("\n");
  // A reader that went away, or a full disk, ends neither the agent nor the record of its run.
  if (files_.readable >= 0) (void)sys::WriteAll(files_.readable, lines);
  if (files_.terminal >= 0) (void)sys::WriteAll(files_.terminal, lines);
}

Status Supervisor::Read(int fd, agent::StreamReader& reader, int raw, bool* open) {
  char chunk[kChunkBytes];
  ssize_t n = ::read(fd, chunk, sizeof chunk);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return Ok();
  if (n < 0) return Errno("reading the agent's output");
  if (n == 0) {
    *open = false;
    return Ok();
  }
  idle_ = NextIdle();
  int64_t room = request_.output_bytes - output_bytes_;
  output_bytes_ += n;
  std::string_view bytes(chunk,
                         static_cast<size_t>(std::min<int64_t>(n, std::max<int64_t>(room, 0))));
  if (raw >= 0) (void)sys::WriteAll(raw, bytes);
  Write(reader.Feed(bytes));
  if (output_bytes_ > request_.output_bytes) End(EndKind::kOutputLimit);
  return Ok();
}

// Lets the call go on, unless an executable of its caller is still to be read.
bool Supervisor::Pass(const sandbox::Connect& connect) {
  std::optional<gateway::Connector> connector = owners_.Examine(connect.thread, connect.socket);
  if (connector && connector->pending) return false;
  bool waited = sandbox_.connects().Continue(connect);
  // Before the gateway can ask: that is answered by this thread too.
  if (waited && connector) owners_.Remember(std::move(*connector));
  return true;
}

void Supervisor::TakeConnect(short events) {
  std::optional<sandbox::Connect> connect = sandbox_.connects().Take(events);
  if (connect && !Pass(*connect)) connects_.push_back(*connect);
}

void Supervisor::Verify() {
  if (!verifying()) return;
  Result<bool> done = owners_.Proceed(identity_);
  if (!done.ok()) End(EndKind::kGatewayLost);
  if (!done.ok() || !done.value()) return;
  connects_.erase(std::remove_if(connects_.begin(), connects_.end(),
                                 [this](const sandbox::Connect& each) { return Pass(each); }),
                  connects_.end());
}

void Supervisor::TakeNews() {
  Result<gateway::GatewayNews> news = gateway_.TakeNews();
  if (!news.ok()) return End(EndKind::kGatewayLost);
  if (news.value().credential_refused_by.empty()) return;
  refused_by_ = std::move(news.value().credential_refused_by);
  End(EndKind::kCredentialRefused);
}

void Supervisor::TakeSignal() {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) != sizeof info) return;
  if (info.ssi_signo == SIGUSR1) {
    if (!reload_.Perform(gateway_).ok()) End(EndKind::kGatewayLost);
    return;
  }
  End(info.ssi_signo == SIGINT ? EndKind::kInterrupted : EndKind::kTerminated);
}

void Supervisor::CheckLimits() {
  if (wall_.passed()) End(EndKind::kTimedOut);
  if (idle_.passed()) End(EndKind::kIdle);
  if (memory_.passed()) {
    if (sandbox_.ResidentBytes() > request_.memory_bytes) End(EndKind::kMemoryLimit);
    memory_ = NextMemory();  // From now: beside many processes the look takes long.
  }
}

Status Supervisor::Turn() {
  pollfd sources[kSourceCount] = {};
  sources[kOutput] = {output_open_ ? sandbox_.output() : -1, POLLIN, 0};
  sources[kError] = {error_open_ ? sandbox_.error() : -1, POLLIN, 0};
  sources[kEnded] = {sandbox_.ended(), POLLIN, 0};
  sources[kConnect] = {sandbox_.connects().descriptor(), POLLIN, 0};
  sources[kIdentity] = {identity_, POLLIN, 0};
  sources[kNews] = {gateway_.news(), POLLIN, 0};
  sources[kGateway] = {gateway_.pidfd(), POLLIN, 0};
  sources[kSignals] = {signals_, POLLIN, 0};
  Deadline next = std::min({wall_, idle_, memory_});
  int wait_ms = verifying() ? 0 : next.poll_ms();
  if (::poll(sources, kSourceCount, wait_ms) < 0 && errno != EINTR) return Errno("poll");

  if (sources[kSignals].revents != 0) TakeSignal();
  if (sources[kConnect].revents != 0) TakeConnect(sources[kConnect].revents);
  if (sources[kIdentity].revents != 0) {
    idle_ = NextIdle();
    if (!owners_.AnswerQuestion(identity_).ok()) End(EndKind::kGatewayLost);
  }
  if (sources[kGateway].revents != 0) End(EndKind::kGatewayLost);
  Verify();
  if (sources[kNews].revents != 0) TakeNews();
  if (sources[kOutput].revents != 0) {
    TRY(Read(sandbox_.output(), output_, files_.raw, &output_open_));
  }
  if (sources[kError].revents != 0) TRY(Read(sandbox_.error(), error_, -1, &error_open_));
  if (sources[kEnded].revents != 0) {
    wait_status_ = sandbox_.TakeEnd();
    End(wait_status_ ? EndKind::kExited : EndKind::kSandboxLost);
  }
  CheckLimits();
  return Ok();
}

// The shell's way of telling how a process ended.
std::optional<int> ShellStatus(std::optional<int> wait_status) {
  if (!wait_status) return std::nullopt;
  if (WIFSIGNALED(*wait_status)) return 128 + WTERMSIG(*wait_status);
  return WEXITSTATUS(*wait_status);
}

Result<AgentEnd> Supervisor::Watch() {
  while (!end_) TRY(Turn());
  sandbox_.Kill();
  // Everything that could write is dead: what is left in the pipes ends.
  while (output_open_ && output_bytes_ <= request_.output_bytes) {
    TRY(Read(sandbox_.output(), output_, files_.raw, &output_open_));
  }
  while (error_open_ && output_bytes_ <= request_.output_bytes) {
    TRY(Read(sandbox_.error(), error_, -1, &error_open_));
  }
  Write(output_.Close());
  Write(error_.Close());
  AgentEnd end;
  end.kind = *end_;
  if (end.kind == EndKind::kExited && output_bytes_ > request_.output_bytes) {
    end.kind = EndKind::kOutputLimit;
  }
  end.status = ShellStatus(wait_status_);
  end.summary = output_.Finish(end.status.value_or(128 + SIGKILL));
  if (end.summary.blocked.empty()) end.summary.blocked = error_.Finish(0).blocked;
  end.refused_by = refused_by_;
  end.output_bytes = output_bytes_;
  end.wall_ms = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - started_).count();
  return end;
}

}  // namespace

Result<Fd> CatchSignals() {
  sigset_t caught;
  ::sigemptyset(&caught);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaddset(&caught, signal);
  if (::sigprocmask(SIG_BLOCK, &caught, nullptr) != 0) return Errno("sigprocmask");
  Fd fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Errno("signalfd");
  return fd;
}

std::optional<EndKind> PendingEnd() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return std::nullopt;
  if (::sigismember(&pending, SIGINT) == 1) return EndKind::kInterrupted;
  bool terminated = ::sigismember(&pending, SIGTERM) == 1 || ::sigismember(&pending, SIGHUP) == 1;
  return terminated ? std::optional<EndKind>(EndKind::kTerminated) : std::nullopt;
}

Result<AgentEnd> Supervise(sandbox::Sandbox& sandbox, gateway::Gateway& gateway,
                           gateway::ConnectionOwners& owners, PolicyReload& reload, int identity,
                           int signals, const Request& request, const OutputFiles& files) {
  return Supervisor(sandbox, gateway, owners, reload, identity, signals, request, files).Watch();
}

}  // namespace run
