// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/proposal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "codec/text/neutral.h"

namespace openshell {
namespace {

constexpr size_t kStatusBytesMax = 100;

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
    std::erase_if(all_, [](const Proposal& proposal) { return !IsProposalId(proposal.id); });
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

bool IsProposalId(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

std::vector<Proposal> ParseProposals(std::string_view text) {
  ProposalReader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.Take(codec::NeutralLine(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(reader).Finish();
}

}  // namespace openshell
