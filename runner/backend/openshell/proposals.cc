// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/proposals.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace openshell {
namespace {

constexpr size_t kListBytesMax = size_t{1} << 20;
constexpr std::chrono::seconds kInterval{3};
constexpr std::chrono::seconds kQuestionTime{30};

}  // namespace

std::string WhyUnclear(const Proposal& proposal) {
  return proposal.too_long ? "whose endpoints or programs are too long to be shown"
                           : "whose lines can be read in several ways";
}

std::string AcceptCommand(const std::string& invocation, const std::string& sandbox,
                          const Proposal& proposal) {
  return invocation + " rule approve " + sandbox + " --chunk-id " + proposal.id;
}

std::string ShowCommand(const std::string& invocation, const std::string& sandbox) {
  return invocation + " rule get " + sandbox;
}

void LogProposal(const std::string& invocation, const std::string& sandbox,
                 const Proposal& proposal) {
  if (!proposal.clear) {
    return logging::Warn("a policy proposal waits " + WhyUnclear(proposal),
                         {{"see", ShowCommand(invocation, sandbox)}});
  }
  logging::Info("a policy proposal waits for approval",
                {{"endpoints", proposal.endpoints},
                 {"binaries", proposal.binaries},
                 {"accept", AcceptCommand(invocation, sandbox, proposal)}});
}

void ProposalWatch::Ask() {
  said_.clear();
  Result<Child> child = client_.AskProposals(sandbox_);
  next_ = Deadline::After(child.ok() ? kQuestionTime : kInterval);
  if (child.ok()) asked_ = std::make_unique<Child>(std::move(child).value());
}

void ProposalWatch::Turn(bool readable) {
  if (!asked_) {
    if (next_.passed()) Ask();
    return;
  }
  if (readable) {
    char piece[4096];
    const ssize_t got = ::read(asked_->output().get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) return;
    if (got > 0 && said_.size() < kListBytesMax) {
      said_.append(piece, static_cast<size_t>(got));
      return;
    }
    for (const Proposal& proposal : client_.ReadProposals(said_)) {
      if (told_.insert(proposal.id).second) LogProposal(invocation_, sandbox_, proposal);
    }
  } else if (!next_.passed()) {
    return;
  }
  asked_.reset();
  next_ = Deadline::After(kInterval);
}

}  // namespace openshell
