// SPDX-License-Identifier: Apache-2.0
#include "run/native/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/deadline.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "caller/connection_owners.h"
#include "gateway/transparent.h"
#include "run/recorder.h"

namespace run {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// The interval at which the limits are checked. A process that comes and goes between two checks is
// seen only where the kernel counts it; docs/threat-model.md says so.
constexpr milliseconds kWatchInterval{200};
constexpr size_t kChunkBytes = 65536;
constexpr size_t kSubjectBytesMax = 16384;
// Calls that waited for an executable and are looked at again in one turn. An agent may have a
// thousand of them, each below 64 processes.
constexpr size_t kCallsPerTurn = 32;

enum Source {
  kOutput,
  kError,
  kEnded,
  kConnect,
  kIdentity,
  kNotices,
  kGateway,
  kSignals,
  kTerminal,
  kSourceCount
};

// The shell's way of telling how a process ended.
std::optional<int> ShellStatus(std::optional<int> wait_status) {
  if (!wait_status) return std::nullopt;
  if (WIFSIGNALED(*wait_status)) return 128 + WTERMSIG(*wait_status);
  return WEXITSTATUS(*wait_status);
}

}  // namespace

Supervisor::Supervisor(const Supervised& parts, OutputFiles files, SupervisorHooks hooks)
    : parts_(parts),
      files_(std::move(files)),
      hooks_(std::move(hooks)),
      said_(files_, parts.secrets),
      repeats_(files_.stream),
      wall_(Deadline::After(seconds(parts.request.timeout_s))),
      idle_(NextIdle()),
      measure_(Deadline::After(kWatchInterval)) {}

Result<bool> Supervisor::Read(int fd, AgentOutput::Pipe pipe, bool* open) {
  char chunk[kChunkBytes];
  ssize_t n = ::read(fd, chunk, sizeof chunk);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (n < 0) return Errno("reading the agent's output");
  if (n == 0) {
    *open = false;
    return false;
  }
  idle_ = NextIdle();
  read_bytes_ += n;
  std::string_view said(chunk, static_cast<size_t>(n));
  if (pipe == AgentOutput::Pipe::kOutput) said = repeats_.Feed(said);
  int64_t room = log_bytes_max() - output_bytes_;
  output_bytes_ += static_cast<int64_t>(said.size());
  said_.Take(pipe, said.substr(0, static_cast<size_t>(std::max<int64_t>(room, 0))));
  if (hooks_.take) hooks_.take(pipe, std::string_view(chunk, static_cast<size_t>(n)));
  if (over_output()) End(sandbox::LimitName::kOutput);
  return true;
}

// Spares the caller a connection that would be accepted and reset. What is not refused here, the
// gateway still judges.
bool Supervisor::Refuse(const sandbox::Connect& connect, const caller::Owner& owner) {
  std::optional<sandbox::Target> target = parts_.sandbox.connects().ReadCapturedTarget(connect);
  if (!target) return false;
  caller::Endpoint remote{target->address.bytes, target->port};
  if (gateway::MayServeCaptured(parts_.reload.in_force(), remote)) return false;
  if (!parts_.gateway.RecordRefusedConnect(remote, owner).ok()) return false;
  idle_ = NextIdle();
  parts_.sandbox.connects().Refuse(connect);
  return true;
}

// Lets the call go on or refuses it, unless an executable of its caller is still to be read.
bool Supervisor::Pass(const sandbox::Connect& connect) {
  std::optional<caller::Connector> connector;
  {
    sandbox::ActAsAgent agent(parts_.sandbox.ids());
    connector = parts_.owners.Examine(connect.thread, connect.socket);
  }
  if (connector && connector->pending) return false;
  // A brokered connection belongs to a caller that is known, or is not made.
  if (!connector && parts_.sandbox.connects().brokered()) {
    parts_.sandbox.connects().Refuse(connect);
    return true;
  }
  if (connector && Refuse(connect, connector->owner)) return true;
  if (parts_.sandbox.connects().brokered()) {
    connector->inode = connect.inode;
    connector->owner.destination = {connect.target.address.bytes, connect.target.port};
  }
  bool waited = parts_.sandbox.connects().Continue(connect);
  // Before the gateway can ask: that is answered by this thread too.
  if (waited && connector) parts_.owners.Remember(std::move(*connector));
  return true;
}

void Supervisor::TakeConnect(short events) {
  std::optional<sandbox::Connect> connect = parts_.sandbox.TakeConnect(events);
  if (connect && !Pass(*connect)) connects_.push_back(*connect);
}

void Supervisor::Verify() {
  if (!verifying()) return;
  Result<bool> done = parts_.owners.Proceed(parts_.identity);
  if (!done.ok()) End(EndKind::kGatewayLost);
  if (!done.ok() || !done.value()) return;
  for (size_t left = std::min(connects_.size(), kCallsPerTurn); left > 0; --left) {
    sandbox::Connect connect = connects_.front();
    connects_.pop_front();
    if (!Pass(connect)) connects_.push_back(connect);
  }
}

const std::string& Supervisor::NarrowedBy() {
  TakeNotices();
  return narrowed_by_;
}

// All of it, before what the agent says is read: a token is announced before it is used.
void Supervisor::TakeNotices() {
  for (;;) {
    Result<bool> more = sys::WaitReadable(parts_.gateway.notices(), Deadline::After({}));
    if (!more.ok() || !more.value()) return;
    Result<gateway::GatewayNotices> notices = parts_.gateway.TakeNotices();
    if (!notices.ok() || notices.value().ended) return End(EndKind::kGatewayLost);
    parts_.secrets.Add(notices.value().token.reveal());
    if (notices.value().identity) parts_.recorder.Note(*notices.value().identity);
    if (notices.value().wants_subject) GiveSubject(*notices.value().wants_subject);
    if (!notices.value().narrowed_by.empty()) {
      narrowed_by_ = std::move(notices.value().narrowed_by);
    }
    if (!notices.value().model_unresolved.empty()) {
      refused_by_ = std::move(notices.value().model_unresolved);
      End(EndKind::kModelUnresolved);
    }
    if (notices.value().credential_refused_by.empty()) continue;
    refused_by_ = std::move(notices.value().credential_refused_by);
    End(EndKind::kCredentialRefused);
  }
}

// Opened by its path each time: who renews it puts another file there.
void Supervisor::GiveSubject(size_t grant) {
  SecretString text;
  if (grant < parts_.subject_files.size() && !parts_.subject_files[grant].empty()) {
    Result<std::string> read = ReadRegularFile(parts_.subject_files[grant], kSubjectBytesMax);
    if (read.ok()) text = std::move(read).value();
  }
  if (!parts_.gateway.GiveSubject(grant, text).ok()) End(EndKind::kGatewayLost);
}

void Supervisor::TakeSignal() {
  signalfd_siginfo info{};
  if (::read(parts_.signals.caught.get(), &info, sizeof info) != sizeof info) return;
  if (info.ssi_signo == SIGUSR1) {
    if (!parts_.reload.Perform(parts_.gateway).ok()) End(EndKind::kGatewayLost);
    return;
  }
  End(info.ssi_signo == SIGINT ? EndKind::kInterrupted : EndKind::kTerminated);
}

void Supervisor::CheckLimits() {
  if (wall_.passed()) End(sandbox::LimitName::kTimeout);
  if (idle_.passed()) End(sandbox::LimitName::kIdle);
  if (measure_.passed()) {
    std::optional<sandbox::LimitName> limit = parts_.sandbox.ReachedLimit(AddedUsage());
    if (limit && (!hooks_.absorb || !hooks_.absorb(*limit))) End(*limit);
    nanoseconds spent = parts_.gateway.ProcessorTime() + OwnProcessorTime() - spent_before_;
    if (spent > seconds(parts_.request.runner_cpu_s)) End(sandbox::LimitName::kRunnerCpu);
    using std::chrono::duration_cast;
    said_.Refresh(duration_cast<seconds>(Deadline::Clock::now() - started_).count());
    // Counted from now: beside many processes it takes long.
    measure_ = Deadline::After(kWatchInterval);
  }
}

Status Supervisor::Turn(std::vector<pollfd>* more, Deadline until, bool reads) {
  std::vector<pollfd> sources(kSourceCount);
  // An agent whose output is not read waits, as it would in any pipeline; its limits do not.
  const bool takes = !said_.full() && reads;
  sources[kOutput] = {output_open_ && takes ? parts_.sandbox.output() : -1, POLLIN, 0};
  sources[kError] = {error_open_ && takes ? parts_.sandbox.error() : -1, POLLIN, 0};
  sources[kEnded] = {parts_.sandbox.ended(), POLLIN, 0};
  sources[kConnect] = {parts_.sandbox.connects().descriptor(), POLLIN, 0};
  sources[kIdentity] = {parts_.identity, POLLIN, 0};
  sources[kNotices] = {parts_.gateway.notices(), POLLIN, 0};
  sources[kGateway] = {parts_.gateway.pidfd(), POLLIN, 0};
  sources[kSignals] = {parts_.signals.caught.get(), POLLIN, 0};
  sources[kTerminal] = {said_.waiting_terminal(), POLLOUT, 0};
  if (more != nullptr) sources.insert(sources.end(), more->begin(), more->end());
  const Deadline next = std::min({wall_, idle_, measure_, until});
  const int wait_ms = verifying() ? 0 : next.poll_ms();
  if (::poll(sources.data(), sources.size(), wait_ms) < 0 && errno != EINTR) return Errno("poll");
  if (more != nullptr) std::copy(sources.begin() + kSourceCount, sources.end(), more->begin());

  if (sources[kSignals].revents != 0) TakeSignal();
  if (sources[kTerminal].revents != 0) said_.Flush();
  if (sources[kConnect].revents != 0) TakeConnect(sources[kConnect].revents);
  if (sources[kIdentity].revents != 0) {
    idle_ = NextIdle();
    if (!parts_.owners.AnswerQuestion(parts_.identity).ok()) End(EndKind::kGatewayLost);
  }
  if (sources[kGateway].revents != 0) End(EndKind::kGatewayLost);
  Verify();
  if (sources[kNotices].revents != 0) TakeNotices();
  if (sources[kOutput].revents != 0) {
    TRY(Read(parts_.sandbox.output(), AgentOutput::Pipe::kOutput, &output_open_));
  }
  if (sources[kError].revents != 0) {
    TRY(Read(parts_.sandbox.error(), AgentOutput::Pipe::kError, &error_open_));
  }
  if (sources[kEnded].revents != 0) {
    wait_status_ = parts_.sandbox.TakeEnd();
    End(wait_status_ ? EndKind::kExited : EndKind::kSandboxLost, wait_status_);
  }
  CheckLimits();
  return Ok();
}

// Drains what a command wrote before it ended, which is in the pipe by now. Something may go on
// writing, or read there too, and a pipe whose writers are dead need not have ended: a descriptor
// of it may lie in a socket. So this takes what there is and never waits.
Status Supervisor::Drain(int fd, AgentOutput::Pipe pipe, bool* open) {
  int waiting = 0;
  if (::ioctl(fd, FIONREAD, &waiting) != 0) return Errno("ioctl(FIONREAD)");
  for (int64_t until = read_bytes_ + waiting; *open && read_bytes_ < until && !over_output();) {
    bool found = TRY(Read(fd, pipe, open));
    if (!found) return Ok();
  }
  return Ok();
}

// Another instance was put in place of the one before: nothing of that waits any more.
void Supervisor::FollowSandbox() {
  if (init_ == parts_.sandbox.init_pid()) return;
  init_ = parts_.sandbox.init_pid();
  parts_.owners.Follow(init_);
  connects_.clear();
  output_open_ = error_open_ = true;
}

Status Supervisor::Drain() {
  TRY(Drain(parts_.sandbox.output(), AgentOutput::Pipe::kOutput, &output_open_));
  return Drain(parts_.sandbox.error(), AgentOutput::Pipe::kError, &error_open_);
}

void Supervisor::End(EndCause cause, std::optional<int> wait_status) {
  if (end_) return;
  end_ = cause;
  wait_status_ = wait_status;
}

Deadline Supervisor::NextIdle() const {
  if (parts_.request.idle_timeout_s == 0) return Deadline::Never();
  return Deadline::After(seconds(parts_.request.idle_timeout_s));
}

Result<AgentEnd> Supervisor::Finish() {
  ENSURE(end_.has_value());
  parts_.sandbox.Kill();
  // Everything that could write is dead: what is in the pipes is all.
  TakeNotices();
  TRY(Drain());
  AgentEnd end;
  end.kind = *end_;
  // An agent may take a limit for something else, or not notice: what it left is not whole.
  if (end.kind == EndKind::kExited || end.kind == EndKind::kSandboxLost ||
      end.kind == EndKind::kGatewayLost) {
    if (std::optional<sandbox::LimitName> limit = parts_.sandbox.ReachedLimit(AddedUsage()))
      end.kind = *limit;
  }
  if (end.kind == EndKind::kExited && over_output()) {
    end.kind = sandbox::LimitName::kOutput;
  }
  end.status = ShellStatus(wait_status_);
  end.summary = said_.Finish(end.status.value_or(128 + SIGKILL));
  end.tail = said_.tail();
  end.line_times_ms = said_.TakeLineTimes();
  end.output_lost = said_.lost();
  end.refused_by = refused_by_;
  end.output_bytes = output_bytes_;
  end.agent_cpu = parts_.sandbox.ProcessorTime(AddedUsage());
  end.supervisor_ms =
      std::chrono::duration_cast<milliseconds>(OwnProcessorTime() - spent_before_).count();
  nanoseconds spent = parts_.gateway.ProcessorTime() + OwnProcessorTime() - spent_before_;
  nanoseconds left =
      std::max<nanoseconds>(seconds(parts_.request.runner_cpu_s) - spent, seconds(1));
  end.processor_max = OwnProcessorTime() + left;
  end.wall_ms = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - started_).count();
  return end;
}

}  // namespace run
