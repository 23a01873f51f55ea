// SPDX-License-Identifier: Apache-2.0
// The agent's surroundings: its program, environment and input, and the connections of its sandbox
// to the gateway, the policy's programs and the changes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/harness.h"
#include "base/fd.h"
#include "base/result.h"
#include "caller/program_links.h"
#include "change/capture.h"
#include "gateway/gateway.h"
#include "run/image.h"
#include "run/request.h"
#include "run/shown/programs.h"
#include "sandbox/plan.h"
#include "sandbox/sandbox.h"

namespace run {

// The place of the agent's program, on the host or in the image.
struct AgentProgram {
  std::string path;   // Canonical; empty if it is only known inside (relative).
  std::string found;  // The path as PATH or the command names it; absolute, or empty.
  bool known_agent = false;
  std::string package;  // The directory of its package's programs; empty if it has no package.
};

// Returns PATH: that of `image`, its own or the usual one, or without one (null) the host's.
std::string SearchPath(const RunImage* image);

// Returns the program of that name in the first absolute place of SearchPath(); empty if there is
// none.
std::string FindProgram(const std::string& name, const RunImage* image);

// Finds the program of `agent`, or without one (null) of `command`, as a shell would: in `image` on
// its PATH, or without one (null) on the host's. An agent's package is installed if that was not
// done before, in a sandbox of `request`'s tier. Fails with kNotFound and a hint for an agent that
// is not installed; a command that is not found here is left to the sandbox to find.
Result<AgentProgram> FindAgent(const agent::AgentDescription* agent, const Request& request,
                               const RunImage* image);

// Returns what the sandbox shows beyond `policy` so that `program`, and the programs on
// SearchPath(), can be run: those of `image`, or if it is null, of the host.
Programs FindRunPrograms(const AgentProgram& program, const policy::FilesystemPolicy& policy,
                         const std::string& checkout, const RunImage* image,
                         const sandbox::HostView& host);

// Adds the image's variables, but for those that are there already.
void AddImageVariables(const RunImage& image,
                       std::vector<std::pair<std::string, std::string>>* variables);

// Returns the agent's whole environment: nothing of the host's but what is listed here, by name,
// and what `credentials` (RunCredentials::environment) says. Placeholders stand for secrets; the
// proxy and certificate variables are OpenShell's (its child environment). Without an image PATH is
// that of `programs`, before the usual one. The variables of `image` (null: none) come last, but
// its PATH before the usual one. `places` are the agent's own.
std::vector<std::pair<std::string, std::string>> AgentEnvironment(
    const Request& request, const agent::AgentPlan& plan, const AgentProgram& program,
    const Programs& programs, const std::vector<std::pair<std::string, std::string>>& credentials,
    const RunImage* image, const sandbox::Places& places);

// Returns files below the agent's home, for programs that learn from no variable whom to trust, or
// whose configuration comes before it: wget, Mercurial, PHP and Gradle.
std::vector<sandbox::WorkspaceFile> TrustFiles(const sandbox::Places& places);

// Files and directories on the host where this CI keeps tokens, from the variables it names them
// in.
std::vector<std::string> HostSecrets();

// Makes the agent's own directory where the tier is landlock; nullopt in any other tier.
Result<std::optional<sandbox::ScratchDirectory>> MakeScratch(const Request& request,
                                                             const std::string& checkout);

// Opens the agent's standard input: a file, since a pipe would need a writer.
Result<Fd> OpenInput(const std::string& text);

// Puts the gateway under the run's limits, and has it take over the only ways out of its sandbox.
Status Connect(sandbox::Sandbox& sandbox, gateway::Gateway& gateway);

// Follows the policy's programs that are links, as the sandbox shows them before its agent can
// change them. Logs a warning for each that is not followed.
Result<caller::ProgramLinks> FollowLinks(const policy::Policy& policy,
                                         const sandbox::Sandbox& sandbox);

// Returns the tree that the agent worked on: without the report, and with the files in `replaced`
// as the agent was given them.
change::ChangedTree TreeOf(const sandbox::Sandbox& sandbox, const std::string& report_dir,
                           const std::vector<sandbox::WorkspaceFile>& replaced);

}  // namespace run
