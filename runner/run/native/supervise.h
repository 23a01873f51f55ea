// SPDX-License-Identifier: Apache-2.0
// Supervises a running sandbox, a turn at a time: output, limits, signals and the gateway, until
// its agent has ended.
//
//   Supervisor supervisor(...);
//   while (!supervisor.ended()) TRY(supervisor.Turn());
//   AgentEnd end = TRY(supervisor.Finish());
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stream.h"
#include "base/deadline.h"
#include "base/result.h"
#include "caller/connection_owners.h"
#include "codec/data/secret_mask.h"
#include "gateway/gateway.h"
#include "run/agent_end.h"
#include "run/agent_output.h"
#include "run/native/policy_reload.h"
#include "run/request.h"
#include "run/signals.h"
#include "sandbox/sandbox.h"

namespace run {

// What is supervised, and with what. Borrowed.
struct Supervised {
  sandbox::Sandbox& sandbox;
  gateway::Gateway& gateway;
  caller::ConnectionOwners& owners;  // Answers the gateway's questions.
  PolicyReload& reload;              // At SIGUSR1.
  int identity;                      // The answering end of the gateway's questions.
  const Signals& signals;
  const Request& request;
  // Masks what the agent says. Tokens are added that the gateway fetches meanwhile.
  codec::SecretMask& secrets;
  // By grant of the gateway: the file of its subject token. `recorder` notes the identities that
  // were exchanged.
  const std::vector<std::string>& subject_files;
  Recorder& recorder;
};

// What others have a supervisor do besides. All may be null.
struct SupervisorHooks {
  // Takes all that the agent's processes wrote, before it is masked.
  std::function<void(AgentOutput::Pipe pipe, std::string_view bytes)> take;
  // Called if the sandbox reached this limit. Returns true if what reached it is being ended, and
  // the sandbox goes on.
  std::function<bool(sandbox::LimitName limit)> absorb;
};

class Supervisor {
 public:
  Supervisor(const Supervised& parts, OutputFiles files, SupervisorHooks hooks);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Waits until something is to be done, but not beyond `until`, and does it. Waits for `more` too,
  // which may be null: their `revents` are set. Unless `reads`, the agent's output stays in its
  // pipes. Fails only when waiting itself fails.
  Status Turn(std::vector<pollfd>* more = nullptr, Deadline until = Deadline::Never(),
              bool reads = true);
  // Reads what is in the agent's pipes by now to its end.
  Status Drain();
  // The idle time begins anew.
  void KeepAlive() { idle_ = NextIdle(); }
  // Another instance may have been put in place of the sandbox (Sandbox::Replace()).
  void FollowSandbox();
  // Ends the agent's time as `cause`; `wait_status` (waitpid(2)) is what its own is taken to be.
  void End(EndCause cause, std::optional<int> wait_status = std::nullopt);
  bool ended() const { return end_.has_value(); }
  // Returns what has narrowed the run by now (gateway::Ratchet); empty if nothing has.
  const std::string& NarrowedBy();

  // Kills what is left of the sandbox and says how it ended.
  Result<AgentEnd> Finish();

 private:
  Status Drain(int fd, AgentOutput::Pipe pipe, bool* open);
  // A lasting sandbox bounds the output of each command instead.
  bool over_output() const {
    return !parts_.request.lasting && output_bytes_ > parts_.request.output_bytes;
  }
  // The log is written line by line, each searched for tokens: many times the cost of passing it
  // on. Of a lasting sandbox, whose clients have it all, it has the beginning.
  int64_t log_bytes_max() const {
    constexpr int64_t kLastingBytes = int64_t{4} << 20;
    const int64_t most = parts_.request.output_bytes;
    return parts_.request.lasting ? std::min(most, kLastingBytes) : most;
  }
  // Returns false if nothing was there.
  Result<bool> Read(int fd, AgentOutput::Pipe pipe, bool* open);
  bool Pass(const sandbox::Connect& connect);
  bool Refuse(const sandbox::Connect& connect, const caller::Owner& owner);
  void TakeConnect(short events);
  // Reads on in the executables that calls and questions wait for, a piece each turn.
  void Verify();
  bool verifying() const { return !connects_.empty() || parts_.owners.pending(); }
  void TakeNotices();
  void GiveSubject(size_t grant);
  void TakeSignal();
  void CheckLimits();
  sandbox::Sandbox::AddedUsage AddedUsage() const {
    return {parts_.gateway.MemoryBytes(), parts_.gateway.ProcessorTime()};
  }
  Deadline NextIdle() const;

  const Supervised parts_;
  const OutputFiles files_;
  const SupervisorHooks hooks_;
  pid_t init_ = parts_.sandbox.init_pid();
  AgentOutput said_;
  agent::RepeatFilter repeats_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  // Processor time, on what came before the agent.
  std::chrono::nanoseconds spent_before_ = OwnProcessorTime();
  Deadline wall_;
  Deadline idle_;
  Deadline measure_;  // When the sandbox is measured next.
  bool output_open_ = true;
  bool error_open_ = true;
  int64_t read_bytes_ = 0;                 // From both pipes,
  int64_t output_bytes_ = 0;               // and without what only repeats.
  std::deque<sandbox::Connect> connects_;  // They wait for Verify().
  std::optional<EndCause> end_;
  std::optional<int> wait_status_;
  std::string narrowed_by_;
  std::string refused_by_;
};

}  // namespace run
