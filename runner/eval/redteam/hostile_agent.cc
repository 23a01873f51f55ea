// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/hostile_agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/deadline.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "eval/redteam/upstream.h"

namespace redteam {
namespace {

constexpr std::chrono::seconds kProbeTime{5};
constexpr std::chrono::seconds kAllTime{20};  // Far more than they take.
constexpr unsigned kVictimSeconds = 120;
constexpr size_t kLineBytesMax = 16384;

std::string_view CameName(Came came) {
  return came == Came::kThrough ? "through" : came == Came::kStopped ? "stopped" : "undecided";
}

[[noreturn]] void Try(const Probe& probe, const Targets& targets, int out) {
  ::signal(SIGPIPE, SIG_IGN);
  ::alarm(static_cast<unsigned>(kProbeTime.count()));
  Attempt attempt = probe.attempt(targets);
  (void)sys::WriteAll(out, RenderLine(probe.id, attempt)).ok();
  ::_exit(0);
}

// The line of a probe; of one that was killed, what killed it.
Result<std::string> TryApart(const Probe& probe, const Targets& targets) {
  auto [read_end, write_end] = TRY(sys::Pipe());
  pid_t child = ::fork();
  if (child < 0) return Errno("fork");
  if (child == 0) Try(probe, targets, write_end.get());
  write_end.Close();
  const Deadline deadline = Deadline::After(kProbeTime);
  std::string line;
  while (line.size() < kLineBytesMax) {
    Result<bool> ready = sys::WaitReadable(read_end.get(), deadline);
    if (!ready.ok() || !ready.value()) break;
    char buffer[4096];
    ssize_t got = ::read(read_end.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    line.append(buffer, static_cast<size_t>(got));
  }
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ParseLine(line)) return line;
  // The system-call filter may end a process.
  bool filtered = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
  return RenderLine(probe.id, {filtered ? Came::kStopped : Came::kUndecided,
                               filtered ? "SIGSYS" : "it did not end in time, or was ended"});
}

}  // namespace

std::string RenderLine(std::string_view id, const Attempt& attempt) {
  codec::Json json;
  json.Set("probe", id).Set("came", CameName(attempt.came)).Set("note", attempt.note);
  json.Set("found", codec::Json::FromStrings(attempt.found));
  return codec::RenderJsonLine(json);
}

std::optional<AttemptLine> ParseLine(std::string_view line) {
  if (line.size() > kLineBytesMax || !line.starts_with('{')) return std::nullopt;
  Result<codec::Json> json = codec::ParseJson(line);
  if (!json.ok()) return std::nullopt;
  const std::string came = json.value().StringAt("came");
  AttemptLine read{json.value().StringAt("probe"), {}};
  bool known = false;
  for (Came one : {Came::kThrough, Came::kStopped, Came::kUndecided}) {
    if (CameName(one) != came) continue;
    read.attempt.came = one;
    known = true;
  }
  if (!known || read.id.empty()) return std::nullopt;
  read.attempt.note = json.value().StringAt("note");
  const codec::Json* found = json.value().Find("found");
  if (found != nullptr && found->array() != nullptr) {
    for (const codec::Json& one : *found->array()) {
      if (one.string() != nullptr) read.attempt.found.push_back(*one.string());
    }
  }
  return read;
}

Status TryEverything(const Targets& targets) {
  if (targets.waits) {
    ::alarm(kVictimSeconds);
    while (true) ::pause();
  }
  if (targets.serves) return Serve(Fd(STDIN_FILENO));
  const Deadline deadline = Deadline::After(kAllTime);
  for (const Probe& probe : Probes()) {
    if (deadline.passed()) break;  // Probes without a line are undecided.
    if ((probe.category == Category::kSmuggling) != (targets.upstream > 0)) continue;
    if (targets.outside && !probe.controlled) continue;
    bool skipped = std::find(targets.skipped.begin(), targets.skipped.end(), probe.id) !=
                   targets.skipped.end();
    if (skipped) continue;
    std::string line = TRY(TryApart(probe, targets));
    TRY(sys::WriteAll(STDOUT_FILENO, line + "\n"));
  }
  return Ok();
}

}  // namespace redteam
