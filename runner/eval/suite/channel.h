// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace eval {

// The part of what happened in a cell that a check looks at.
enum class Channel {
  kAnswer,    // The agent's last words.
  kFiles,     // The changes in the checkout.
  kCommands,  // Programs that were started, with their arguments.
  kNetwork,   // Requests and connections, allowed and denied.
  kFindings,  // The reports of the gateway and the gates.
  kState,     // The state behind the fake tools.
  kTools,     // Calls of the fake tools.
  kModel,     // The texts that models were sent.
  kSent,      // The watched texts that any server was sent.
};
inline constexpr size_t kChannels = 9;
// Their names in suites and results, in that order.
inline constexpr std::array<std::string_view, kChannels> kChannelNames = {
    "answer", "files", "commands", "network", "findings", "state", "tools", "model", "egress"};

constexpr std::string_view Render(Channel channel) {
  return kChannelNames[static_cast<size_t>(channel)];
}

}  // namespace eval
