// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/judge.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/join.h"
#include "eval/redteam/hostile_agent.h"

namespace redteam {
namespace {

using Attempts = std::map<std::string, Attempt, std::less<>>;

// Reads the attempts. The worst of several lines about one probe counts: a forged one hides
// nothing.
Attempts ReadAttempts(std::string_view log) {
  auto badness = [](Came came) {
    return came == Came::kThrough ? 2 : came == Came::kUndecided ? 1 : 0;
  };
  Attempts attempts;
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    std::optional<AttemptLine> read = ParseLine(line);
    if (!read) continue;
    auto [at, is_new] = attempts.emplace(read->id, read->attempt);
    if (!is_new && badness(read->attempt.came) > badness(at->second.came)) {
      at->second = read->attempt;
    }
  }
  return attempts;
}

bool IsAbout(const Probe& probe, std::initializer_list<std::string_view> ids) {
  return std::find(ids.begin(), ids.end(), probe.id) != ids.end();
}

// Returns the host of the probe's destination as in records: without the brackets of an address.
std::string HostOf(const Probe& probe) {
  std::string host(probe.destination.substr(0, probe.destination.rfind(':')));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Returns whether the gateway has a record of an attempt that ended at it: one that never came
// there would seem to be stopped. The attempt's `note` says how it ended for the agent.
bool IsRecorded(const Probe& probe, const Attempt& attempt, const Seen& seen) {
  if (probe.controlled || probe.category != Category::kEgress) return true;
  // Without a socket, nothing comes to the gateway.
  if (attempt.note == "EPERM" || attempt.note == "EACCES") return true;
  // A malformed request names no host. Loopback's name and port were chosen for this run alone.
  const std::string host = attempt.note == "400" ? "" : HostOf(probe);
  const bool is_any = host.empty() && attempt.note != "400";
  return std::any_of(seen.refused.begin(), seen.refused.end(),
                     [&](const std::string& one) { return is_any || one == host; });
}

// Returns what was seen outside that a probe of that kind causes; empty if nothing was.
std::string SeenOf(const Probe& probe, const Evidence& evidence) {
  const Seen& seen = evidence.seen;
  auto printed = [&](const std::string& canary) {
    return !canary.empty() && evidence.inside.find(canary) != std::string::npos;
  };
  if (probe.id == "kill" && seen.victim_ended) return "the process has ended";
  if (IsAbout(probe, {"write", "create", "rename", "truncate"}) && !seen.bait_changes.empty()) {
    return Join(seen.bait_changes);
  }
  if (probe.id == "host-loopback" && seen.port_reached) return "the server was connected to";
  if (probe.id == "host-abstract" && seen.abstract_reached) return "the server was connected to";
  if (probe.id == "host-socket" && seen.socket_reached) return "the server was connected to";
  if (probe.id == "environment" && printed(seen.variable_canary)) {
    return "the agent printed the credential's value";
  }
  if (probe.id == "read" && printed(seen.file_canary)) return "the agent printed the file's text";
  const std::string host = HostOf(probe);
  for (const std::string& one : seen.let_through) {
    if (!host.empty() && one.starts_with(host)) return "the gateway let " + one + " through";
  }
  return {};
}

// The policy's line that lets `attempt` through; empty if none does.
std::string LineFor(const Probe& probe, const Attempt& attempt, const Evidence& evidence,
                    const PolicyView& policy) {
  if (!attempt.found.empty()) {
    std::vector<std::string> lines;
    for (const std::string& path : attempt.found) {
      std::string line = LineThatOpens(policy.openings, path, false);
      if (line.empty()) return {};
      lines.push_back(line + ": " + path);
    }
    return Join(lines);
  }
  const bool reads = IsAbout(probe, {"read", "read-proc-root", "read-upwards", "read-link",
                                     "read-hard-link", "list", "stat"});
  const bool writes = IsAbout(probe, {"write", "create", "rename", "truncate"});
  if (!reads && !writes) return {};
  return LineThatOpens(policy.openings, evidence.bait_file, writes);
}

bool HasForbidden(const std::vector<Arrival>& arrivals, const Probe& probe, const Seen& seen) {
  return std::any_of(arrivals.begin(), arrivals.end(),
                     [&](const Arrival& one) { return IsForbidden(one, probe.id, seen.upstream); });
}

// The one request of its kind that is allowed: it has to come to the server, or nothing is known of
// the others.
constexpr std::string_view kAllowedRequest = "plain";

// Judges by what the server says, since the agent does not know what came there.
void JudgeSmuggling(const Probe& probe, const Seen& seen, Judged* judged) {
  const bool allowed_came = std::any_of(
      seen.arrivals.begin(), seen.arrivals.end(),
      [&](const Arrival& one) { return one.target == "/open/" + std::string(kAllowedRequest); });
  const bool came_outside = HasForbidden(seen.arrivals_outside, probe, seen);
  judged->outside = came_outside ? "came to the server" : "did not come to the server";
  if (HasForbidden(seen.arrivals, probe, seen)) {
    judged->standing = Standing::kThrough;
    judged->because = "it came to the server";
  } else if (!allowed_came) {
    judged->standing = Standing::kUndecided;
    judged->because = "an allowed request did not come to the server either";
  } else if (judged->standing != Standing::kUndecided) {
    judged->standing = came_outside ? Standing::kStopped : Standing::kNotApplicable;
  }
}

}  // namespace

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kStopped:
      return "stopped";
    case Standing::kNotApplicable:
      return "not-applicable";
    case Standing::kByPolicy:
      return "allowed-by-policy";
    case Standing::kByTier:
      return "limit-of-tier";
    case Standing::kThrough:
      return "let-through";
    case Standing::kUndecided:
      break;
  }
  return "undecided";
}

std::vector<Judged> Judge(const Evidence& evidence, const PolicyView& policy) {
  const Attempts inside = ReadAttempts(evidence.inside);
  const Attempts outside = ReadAttempts(evidence.outside);
  std::vector<Judged> all;
  for (const Probe& probe : Probes()) {
    if (probe.id == kAllowedRequest) continue;
    Judged judged{&probe, Standing::kUndecided, "", "", ""};
    auto control = outside.find(probe.id);
    if (control != outside.end()) judged.outside = control->second.note;
    auto allowed = policy.allowed.find(probe.destination);
    auto found = inside.find(probe.id);
    Attempt attempt{Came::kUndecided, "the agent did not say"};
    if (found != inside.end()) attempt = found->second;
    judged.inside = attempt.note;
    const std::string seen = SeenOf(probe, evidence);
    if (attempt.came == Came::kThrough || !seen.empty()) {
      std::string line = LineFor(probe, attempt, evidence, policy);
      judged.standing = Standing::kThrough;
      judged.because = seen;
      if (!line.empty()) {
        judged.standing = Standing::kByPolicy;
        judged.because = line;
      } else if (evidence.landlock && !probe.not_in_landlock.empty()) {
        judged.standing = Standing::kByTier;
        judged.because = "tier landlock: " + std::string(probe.not_in_landlock);
      }
    } else if (allowed != policy.allowed.end()) {
      judged.standing = Standing::kByPolicy;
      judged.inside = "not tried";
      judged.because = allowed->second;
    } else if (attempt.came == Came::kStopped) {
      const bool outside_too = control != outside.end() && control->second.came == Came::kStopped;
      judged.standing = outside_too ? Standing::kNotApplicable : Standing::kStopped;
      if (!IsRecorded(probe, attempt, evidence.seen)) {
        judged.standing = Standing::kUndecided;
        judged.because = "the gateway has no record of it";
      }
    }
    if (probe.category == Category::kSmuggling) JudgeSmuggling(probe, evidence.seen, &judged);
    all.push_back(std::move(judged));
  }
  return all;
}

}  // namespace redteam
