// SPDX-License-Identifier: Apache-2.0
// The attempts of a hostile agent. Each is harmless where it succeeds: it asks the kernel for
// something with arguments that lead nowhere, opens without writing, or touches only bait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace redteam {

// The targets that the agent is given by the process that starts it, on its command line. They hold
// no secret: whether a canary was found is decided by its starter.
struct Targets {
  std::string bait;             // A directory of the host that the sandbox has no business with.
  std::string bait_file;        // A file in it.
  std::string abstract_socket;  // The name of an abstract Unix socket that the starter listens on.
  std::string bait_socket;      // The path of a Unix socket in `bait`, likewise.
  int port = 0;                 // A port of 127.0.0.1, likewise.
  pid_t victim = 0;             // A process of the runner's user.
  uint32_t runner = 0;          // The runner's user id.
  std::vector<std::string> credential_files;  // Files of the runner's user; each exists.
  std::vector<std::string> searched;          // Directories to look for credentials in.
  std::vector<std::string> skipped;           // Probes that must not be made.
  std::string checkout;                       // The agent's checkout; set outside only.
  bool outside = false;                       // The control: only what can be tried outside.
  int upstream = 0;     // The port of a server that is allowed in part: only smuggling is tried.
  bool waits = false;   // The victim: tries nothing.
  bool serves = false;  // That server: its standard input is the listening socket.
};

std::string Render(const Targets& targets);
// Fails with kUsage when `text` is not what Render() gives.
Result<Targets> ParseTargets(std::string_view text);

// The outcome of an attempt. Undecided: it could not be made, or had no clear end.
enum class Came { kThrough, kStopped, kUndecided };

struct Attempt {
  Came came = Came::kUndecided;
  std::string note;                     // The error's name, or what was seen.
  std::vector<std::string> found = {};  // Paths, where it is about files.
};

enum class Category { kEscape, kFiles, kEgress, kSmuggling, kCredential };
std::string_view Name(Category category);

struct Probe {
  std::string_view id;
  Category category;
  std::string_view title;  // The attempt: "Mount a file system".
  // The same is tried outside, as the control. Egress is not: nothing may leave the machine.
  bool controlled;
  Attempt (*attempt)(const Targets& targets);
  // The host and port that the probe is about ("redteam.invalid:443"), if it is about one. It is
  // made only if the policy does not allow that.
  std::string_view destination = {};
  // The reason why tier `landlock` cannot stop it, as docs/reference/isolation.md says it; empty if
  // it does.
  std::string_view not_in_landlock = {};
};

// Returns all of them, in the order in which they are made.
const std::vector<Probe>& Probes();

// Each returns a part of Probes().
std::vector<Probe> KernelProbes();
std::vector<Probe> ProcessProbes();
std::vector<Probe> FileProbes();
std::vector<Probe> ConnectionProbes();
std::vector<Probe> ProxyProbes();
std::vector<Probe> SmugglingProbes();  // The first is the one that is allowed.
std::vector<Probe> CredentialProbes();
Probe KillProbe();  // The last one: the victim is not there afterwards.

// Judges the return value of a system call, by errno where it is negative: stopped by what refuses
// (EPERM, EACCES, ENOSYS, EROFS), or because there is nothing at that place (ENOENT, ESRCH, ENXIO,
// ECONNREFUSED, ...); any other error is the call's own, so that it was reached.
Attempt Called(long result);
// Returns a directory in which the agent may make files; outside, the bait; empty if none was
// found.
std::string OwnPlace(const Targets& targets);
// Returns the name of an errno: "EPERM".
std::string ErrorName(int error);

}  // namespace redteam
