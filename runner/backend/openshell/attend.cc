// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/attend.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/sys.h"

namespace openshell {
namespace {

using run::AgentEnd;
using run::AgentOutput;
using run::EndCause;
using run::EndKind;
using std::chrono::seconds;

constexpr size_t kChunkBytes = 65536;
constexpr seconds kReapTime{10};

class Attendance {
 public:
  Attendance(Child command, int signals, int gateway_ended, const Sandbox& sandbox,
             const run::Request& request, const run::OutputFiles& files,
             const codec::SecretMask& secrets, ProposalWatch* proposals)
      : command_(std::move(command)),
        signals_(signals),
        gateway_ended_(gateway_ended),
        sandbox_(sandbox),
        records_ended_(sandbox.records_ended()),
        request_(request),
        said_(files, secrets),
        repeats_(files.stream),
        proposals_(proposals),
        wall_(Deadline::After(seconds(request.timeout_s))),
        idle_(NextIdle()) {}

  Result<AgentEnd> Watch() {
    while (!end_ && (output_open_ || error_open_)) TRY(Turn());
    AgentEnd end;
    end.kind = end_.value_or(EndKind::kExited);
    const pid_t pid = command_.pid();
    if (!end_) end.status = TRY(command_.Wait(Deadline::After(kReapTime)));
    if (!end_ && !sandbox_.client().WhyBroken(pid).empty()) end.kind = EndKind::kGatewayLost;
    end.summary = said_.Finish(end.status.value_or(128 + SIGKILL));
    end.tail = said_.tail();
    end.line_times_ms = said_.TakeLineTimes();
    end.output_lost = said_.lost();
    end.output_bytes = output_bytes_;
    end.wall_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - started_)
            .count();
    return end;
  }

 private:
  Deadline NextIdle() const {
    if (request_.idle_timeout_s == 0) return Deadline::Never();
    return Deadline::After(seconds(request_.idle_timeout_s));
  }

  void End(EndCause kind) {
    if (!end_) end_ = kind;
  }

  Status Read(int fd, AgentOutput::Pipe pipe, bool* open) {
    char chunk[kChunkBytes];
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) return Ok();
    if (n < 0) return Errno("reading the agent's output");
    *open = n > 0;
    if (n == 0) return Ok();
    idle_ = NextIdle();
    std::string_view said(chunk, static_cast<size_t>(n));
    if (pipe == AgentOutput::Pipe::kOutput) said = repeats_.Feed(said);
    const int64_t room = std::max<int64_t>(request_.output_bytes - output_bytes_, 0);
    output_bytes_ += static_cast<int64_t>(said.size());
    said_.Take(pipe, said.substr(0, static_cast<size_t>(room)));
    if (output_bytes_ > request_.output_bytes) End(sandbox::LimitName::kOutput);
    return Ok();
  }

  void TakeSignal() {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGUSR1) return;  // A policy is replaced by `policy set`.
    End(info.ssi_signo == SIGINT ? EndKind::kInterrupted : EndKind::kTerminated);
  }

  // Records that end otherwise are missed when the agent has ended.
  void TakeRecordsEnd() {
    records_ended_ = -1;
    if (sandbox_.RecordsFull()) End(sandbox::LimitName::kRecords);
  }

  Status Turn() {
    const bool takes = !said_.full();
    pollfd sources[] = {{output_open_ && takes ? command_.output().get() : -1, POLLIN, 0},
                        {error_open_ && takes ? command_.error().get() : -1, POLLIN, 0},
                        {signals_, POLLIN, 0},
                        {gateway_ended_, POLLIN, 0},
                        {said_.waiting_terminal(), POLLOUT, 0},
                        {proposals_ != nullptr ? proposals_->source() : -1, POLLIN, 0},
                        {records_ended_, POLLIN, 0}};
    Deadline next = std::min(wall_, idle_);
    if (proposals_ != nullptr) next = std::min(next, proposals_->next());
    if (::poll(sources, std::size(sources), next.poll_ms()) < 0 && errno != EINTR) {
      return Errno("poll");
    }
    if (sources[0].revents != 0) {
      TRY(Read(sources[0].fd, AgentOutput::Pipe::kOutput, &output_open_));
    }
    if (sources[1].revents != 0) {
      TRY(Read(sources[1].fd, AgentOutput::Pipe::kError, &error_open_));
    }
    if (sources[2].revents != 0) TakeSignal();
    if (sources[3].revents != 0) End(EndKind::kGatewayLost);
    if (sources[4].revents != 0) said_.Flush();
    if (proposals_ != nullptr) proposals_->Turn(sources[5].revents != 0);
    if (sources[6].revents != 0) TakeRecordsEnd();
    if (wall_.passed()) End(sandbox::LimitName::kTimeout);
    if (idle_.passed()) End(sandbox::LimitName::kIdle);
    return Ok();
  }

  Child command_;
  int signals_;
  int gateway_ended_;
  const Sandbox& sandbox_;
  int records_ended_;  // -1 once they have.
  const run::Request& request_;
  AgentOutput said_;
  agent::RepeatFilter repeats_;
  ProposalWatch* proposals_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  Deadline wall_;
  Deadline idle_;
  bool output_open_ = true;
  bool error_open_ = true;
  int64_t output_bytes_ = 0;
  std::optional<EndCause> end_;
};

}  // namespace

Result<AgentEnd> Attend(Child command, int signals, int gateway_ended, const Sandbox& sandbox,
                        const run::Request& request, const run::OutputFiles& files,
                        const codec::SecretMask& secrets, ProposalWatch* proposals) {
  return Attendance(std::move(command), signals, gateway_ended, sandbox, request, files, secrets,
                    proposals)
      .Watch();
}

}  // namespace openshell
