// SPDX-License-Identifier: Apache-2.0
// What a person is shown of policy proposals.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "backend/openshell/client/client.h"
#include "base/child.h"
#include "base/deadline.h"

namespace openshell {

// Returns why a proposal is not clear, for a sentence: "whose lines can be read in several ways".
std::string WhyUnclear(const Proposal& proposal);

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
  // `client` is borrowed.
  ProposalWatch(const Client& client, std::string invocation, std::string sandbox)
      : client_(client), invocation_(std::move(invocation)), sandbox_(std::move(sandbox)) {}

  // Turn() is to be called when source() is readable, or next() has passed. source() is -1 if
  // nothing is waited for.
  int source() const { return asked_ ? asked_->output().get() : -1; }
  Deadline next() const { return next_; }
  // A question that fails is asked again later.
  void Turn(bool readable);

 private:
  void Ask();

  const Client& client_;
  std::string invocation_;
  std::string sandbox_;
  std::unique_ptr<Child> asked_;
  std::string said_;
  std::set<std::string> told_;
  Deadline next_ = Deadline::After({});
};

}  // namespace openshell
