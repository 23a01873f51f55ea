// SPDX-License-Identifier: Apache-2.0
// The part of a Server for a person at a terminal: starts a shell on it, and says what is used of
// each limit.
#include "base/wire.h"
#include "codec/text/shell_word.h"
#include "session/server.h"

namespace session {
namespace {

// A command of the sandbox's own shell, and so with no more rights than any other; in a session of
// its own, whose terminal is `path`.
std::string TerminalScript(const std::string& kind, const std::string& term,
                           const std::string& path) {
  std::string missing = "agentic-ci: a shell on a terminal needs the program setsid";
  return "if \\command -v setsid >/dev/null; then (TERM=" + codec::ShellWord(term) +
         " \\command setsid -c " + (kind == "bash" ? "bash" : "sh") + " -i 0<>" +
         codec::ShellWord(path) + " 1>&0 2>&0; exit \"$?\"); else \\command printf '%s\\r\\n' " +
         codec::ShellWord(missing) + " >" + codec::ShellWord(path) + "; (exit 127); fi";
}

}  // namespace

void Server::BeginTerminal(Client& client, const TerminalRequest& request,
                           const std::string& path) {
  if (!shell_.idle()) {
    Error error{Code::kTemporary, "the sandbox's shell has just ended, and the next one starts"};
    return client.channel.Send(wire::Write(MessageKind::kFault, error));
  }
  BeginCommand(&client, TerminalScript(shell_.kind(), request.term, path), Deadline::Never());
  command_->terminal = true;
  client.channel.Send(wire::Write(MessageKind::kDone, path));
}

std::vector<LimitUse> Server::LimitsUsed() const {
  sandbox::Sandbox& sandbox = stage_->sandbox;
  const sandbox::SandboxLimits& most = sandbox.inside().plan->limits;
  const sandbox::Cgroup& cgroup = sandbox.cgroup();
  std::optional<std::chrono::nanoseconds> time = cgroup.ProcessorTime();
  auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.value_or(std::chrono::nanoseconds{0}));
  return {{"memory", cgroup.MemoryPeakBytes().value_or(-1), most.memory_bytes, "bytes"},
          {"disk", sandbox.DiskPeakBytes(), most.disk_bytes, "bytes"},
          {"processes", static_cast<int64_t>(processes_->List().size()), most.pids, ""},
          {"processor time", time ? seconds.count() : -1, most.cpu_s, "s"}};
}

}  // namespace session
