// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/proposal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "codec/text/neutral.h"
#include "session/shell.h"

namespace openshell {
namespace {

constexpr size_t kListBytesMax = size_t{1} << 20;
// A person is to see all of what is accepted: each of the endpoints, and of the programs.
constexpr size_t kOpenedBytesMax = 1000;
constexpr size_t kStatusBytesMax = 100;
constexpr std::chrono::seconds kInterval{3};
constexpr std::chrono::seconds kQuestionTime{30};

// It becomes part of a command that a person is to run.
bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

// The number in "Network Rules:  (version 1, 2 chunks)"; -1 for any other line.
int64_t AnnouncedIn(std::string_view line) {
  constexpr std::string_view kHead = "Network Rules:";
  const size_t comma = line.rfind(", ");
  if (!line.starts_with(kHead) || comma == std::string_view::npos) return -1;
  int64_t number = -1;
  const auto [end, fault] =
      std::from_chars(line.data() + comma + 2, line.data() + line.size(), number);
  const std::string_view rest = line.substr(static_cast<size_t>(end - line.data()));
  return fault == std::errc() && rest.starts_with(" chunk") ? number : -1;
}

// The lines of all proposals, in order.
class ProposalReader {
 public:
  void Take(std::string_view line) {
    const size_t colon = line.find(": ");
    const std::string_view key =
        line.substr(0, colon).substr(std::min(kIndent.size(), line.size()));
    const bool framed = line.starts_with(kIndent) && colon != std::string_view::npos;
    if (framed && key == "Chunk") {
      Begin(line.substr(colon + 2));
    } else if (all_.empty()) {
      if (announced_ < 0) announced_ = AnnouncedIn(line);
    } else if (!line.empty()) {
      TakeField(framed ? key : "", framed ? line.substr(colon + 2) : "");
    }
  }

  std::vector<Proposal> Finish() && {
    End();
    std::map<std::string, int> times;
    for (const Proposal& proposal : all_) ++times[proposal.id];
    const bool counted = announced_ == static_cast<int64_t>(all_.size());
    std::erase_if(all_, [](const Proposal& proposal) { return !IsId(proposal.id); });
    for (Proposal& proposal : all_) {
      if (!counted || times[proposal.id] != 1) proposal.clear = false;
      proposal.too_long = proposal.too_long && proposal.clear;
      proposal.clear = proposal.clear && !proposal.too_long;
      if (!proposal.clear) proposal.endpoints = proposal.binaries = "";
    }
    return std::move(all_);
  }

 private:
  static constexpr std::string_view kIndent = "  ";

  void Begin(std::string_view id) {
    End();
    all_.push_back({.id = std::string(id), .clear = true});
    fields_.clear();
  }

  void TakeField(std::string_view key, std::string_view value) {
    constexpr auto kKeys =
        std::to_array<std::string_view>({"Status", "Rule", "Binary", "Confidence", "Rationale",
                                         "Prover", "Candidate", "Endpoints", "Binaries", "Hits"});
    Proposal& last = all_.back();
    const bool known = std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
    const bool first = fields_.insert(std::string(key)).second;
    if (!known || !first) last.clear = false;
    if (!first) return;
    const bool opened = key == "Endpoints" || key == "Binaries";
    if (opened && value.size() > kOpenedBytesMax) last.too_long = true;
    if (key == "Status") last.status = codec::NeutralLine(value, kStatusBytesMax);
    if (key == "Endpoints") last.endpoints = value;
    if (key == "Binaries") last.binaries = value;
  }

  void End() {
    if (all_.empty()) return;
    for (const char* key : {"Status", "Endpoints", "Binaries"}) {
      if (!fields_.contains(key)) all_.back().clear = false;
    }
  }

  std::vector<Proposal> all_;
  std::set<std::string> fields_;  // The keys of the last one.
  int64_t announced_ = -1;
};

}  // namespace

std::vector<Proposal> ParseProposals(std::string_view text) {
  ProposalReader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.Take(codec::NeutralLine(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(reader).Finish();
}

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
      if (told_.insert(proposal.id).second) LogProposal(invocation_, sandbox_, proposal);
    }
  } else if (!next_.passed()) {
    return;
  }
  asked_.reset();
  next_ = Deadline::After(kInterval);
}

}  // namespace openshell
