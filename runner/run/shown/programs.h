// SPDX-License-Identifier: Apache-2.0
// The places beside /usr where people keep programs: ~/.local/bin, and npm's, nvm's, pyenv's,
// rustup's and CI's own directories. Decides which of them a run exposes beyond its policy,
// read-only, so that the started command and the programs on the caller's PATH can run in the
// sandbox.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sandbox/host.h"

namespace run {

struct ProgramSearch {
  std::string search_path;   // The caller's PATH.
  std::string started;       // The command's path as it was found, absolute; empty if not known.
  bool known_agent = false;  // It may need what stands beside it.
  std::string checkout;      // Canonical. What lies in it is visible, and trusted with nothing.
  // The tree of the agent's package, canonical; empty if it has none. Install scripts wrote it: no
  // link in it is followed out of it, and no script in it says what else of the host is shown.
  std::string package;
  // The paths that the policy shows: nothing is to be done for them.
  std::vector<std::string> shown;
  std::vector<std::string> secrets;  // Paths of the host that must never be seen.
  // The places where the CI keeps tools, open to all users or not.
  std::vector<std::string> tool_caches;
  std::string rustup_home;  // The caller's variable, or empty.
};

struct Programs {
  std::string search_path;         // PATH inside: the caller's places that are visible there.
  std::vector<std::string> shown;  // Files, directories and links to show; in order, each once.
  // The variables by which an installation is found.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> notes;  // Says which places of PATH are left out, and why.
};

// Finds the programs to show. Never shows a home, what holds one or the checkout, a top-level
// directory, credentials, or, for PATH, a directory that is relative, is the sandbox's own or can
// be written by all.
Programs FindPrograms(const ProgramSearch& search, const sandbox::HostView& host);

}  // namespace run
