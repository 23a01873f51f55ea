// SPDX-License-Identifier: Apache-2.0
// Policy proposals on OpenShell: reads them from its command line, and renders what a person is
// shown of each.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/openshell/command_line.h"
#include "base/child.h"
#include "base/deadline.h"

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

// Returns why a proposal is not clear, for a sentence: "whose lines can be read in several ways".
std::string WhyUnclear(const Proposal& proposal);

// Parses what `openshell rule get` prints, with or without colours. Its text may come from the
// sandbox.
std::vector<Proposal> ParseProposals(std::string_view text);

// Returns the command that accepts it. `invocation` is the one of Gateway.
std::string AcceptCommand(const std::string& invocation, const std::string& sandbox,
                          const Proposal& proposal);

// Returns the command that shows the proposals of a sandbox as OpenShell has them.
std::string ShowCommand(const std::string& invocation, const std::string& sandbox);

// Tells the person who watches of a proposal that waits, with the command that accepts it. Where it
// is not clear what that would open, with the command that shows it.
void LogProposal(const std::string& invocation, const std::string& sandbox,
                 const Proposal& proposal);

// Looks for proposals again and again while an agent runs, without making its output wait.
class ProposalWatch {
 public:
  ProposalWatch(CommandLine openshell, std::string invocation, std::string sandbox)
      : openshell_(std::move(openshell)),
        invocation_(std::move(invocation)),
        sandbox_(std::move(sandbox)) {}

  // Turn() is to be called when source() is readable, or next() has passed. source() is -1 if
  // nothing is waited for.
  int source() const { return asked_ ? asked_->output().get() : -1; }
  Deadline next() const { return next_; }
  // A question that fails is asked again later.
  void Turn(bool readable);

 private:
  void Ask();

  CommandLine openshell_;
  std::string invocation_;
  std::string sandbox_;
  std::unique_ptr<Child> asked_;
  std::string said_;
  std::set<std::string> told_;
  Deadline next_ = Deadline::After({});
};

}  // namespace openshell
