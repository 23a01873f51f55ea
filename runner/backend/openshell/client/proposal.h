// SPDX-License-Identifier: Apache-2.0
// Policy proposals of OpenShell, as its command line prints them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace openshell {

// A policy proposal of the agent's, or that OpenShell derived from what it refused.
struct Proposal {
  std::string id = {};  // Hexadecimal digits and '-'.
  std::string status = {};
  std::string endpoints = {};  // In the words of OpenShell's command line.
  std::string binaries = {};
  // True if its lines can be read in one way only, and all that it would open can be shown.
  // Otherwise nothing but the identifier and the status is given.
  bool clear = false;
  // True if it is too long for that; otherwise the path of a program may hold lines that read like
  // OpenShell's own.
  bool too_long = false;
};

// Parses what `openshell rule get` prints, with or without colours. Its text may come from the
// sandbox.
std::vector<Proposal> ParseProposals(std::string_view text);

// The endpoints, and the programs, of a proposal that can be shown to a person whole.
inline constexpr size_t kOpenedBytesMax = 1000;
// Returns whether the identifier of a proposal may become part of a command that a person runs.
bool IsProposalId(std::string_view text);

}  // namespace openshell
