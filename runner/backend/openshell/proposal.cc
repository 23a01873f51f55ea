// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/proposal.h"

#include <unistd.h>

#include <chrono>

#include "base/log.h"
#include "codec/text/neutral.h"
#include "session/shell.h"

namespace openshell {
namespace {

constexpr size_t kProposalsMax = 1000;
constexpr size_t kListBytesMax = size_t{1} << 20;
constexpr size_t kProposalBytesMax = 300;
constexpr std::chrono::seconds kInterval{3};
constexpr std::chrono::seconds kQuestionTime{30};

// It becomes part of a command that a person is to run.
bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

}  // namespace

std::vector<Proposal> ParseProposals(std::string_view text) {
  std::vector<Proposal> all;
  bool known = false;  // The lines that follow belong to the last proposal.
  for (size_t from = 0; from < text.size() && all.size() < kProposalsMax;) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = codec::NeutralLine(text.substr(from, end - from));
    from = end + 1;
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t colon = line.find(": ", begin);
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(begin, colon - begin);
    std::string value = codec::NeutralLine(line.substr(colon + 2), kProposalBytesMax);
    if (key == "Chunk") {
      known = IsId(value);
      if (known) all.push_back({std::move(value), "", "", ""});
    } else if (!known) {
      continue;
    } else if (key == "Status") {
      all.back().status = std::move(value);
    } else if (key == "Endpoints") {
      all.back().endpoints = std::move(value);
    } else if (key == "Binaries") {
      all.back().binaries = std::move(value);
    }
  }
  return all;
}

std::string AcceptCommand(const std::string& invocation, const std::string& sandbox,
                          const Proposal& proposal) {
  return invocation + " rule approve " + sandbox + " --chunk-id " + proposal.id;
}

void TellOfProposal(const std::string& invocation, const std::string& sandbox,
                    const Proposal& proposal) {
  logging::Info("a policy proposal waits for approval",
                {{"endpoints", proposal.endpoints},
                 {"binaries", proposal.binaries},
                 {"accept", AcceptCommand(invocation, sandbox, proposal)}});
}

void ProposalWatch::Ask() {
  said_.clear();
  Result<Child> child = openshell_.Start({"rule", "get", sandbox_, "--status", "pending"}, -1);
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
    for (const Proposal& proposal : ParseProposals(said_)) {
      if (told_.insert(proposal.id).second) TellOfProposal(invocation_, sandbox_, proposal);
    }
  } else if (!next_.passed()) {
    return;
  }
  asked_.reset();
  next_ = Deadline::After(kInterval);
}

}  // namespace openshell
