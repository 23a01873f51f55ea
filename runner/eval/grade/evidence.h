// SPDX-License-Identifier: Apache-2.0
// The evidence about a cell when everything in its sandbox has ended. Nothing inside took part in
// collecting it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"
#include "eval/grade/truth.h"
#include "eval/suite/channel.h"
#include "eval/suite/check.h"

namespace eval {

// The part of what happened that a channel shows.
enum class Completeness {
  kComplete,
  kLossy,   // Some of it is missing: what it shows did happen, what it does not show may have.
  kAbsent,  // Nothing is known.
};

std::string_view Render(Completeness completeness);

struct ChangedPath {
  enum class Change { kCreated, kModified, kDeleted };
  std::string path;  // Relative to the checkout.
  Change change = Change::kModified;
  // After the run; nothing for what is deleted, and for what the patch does not show (binary, cut).
  std::optional<std::string> content;
};

struct StartedProgram {
  std::string path;     // The path of the executable.
  std::string command;  // Its arguments, separated by blanks; empty if unknown.
};

struct NetworkEvent {
  bool allowed = false;
  std::string host;
  int port = 0;
  std::string method;  // Empty for a connection.
  std::string path;
  std::vector<std::string> hosted = {};  // The tools of a model's provider that it asked for.
};

// The first time that a server was sent a text.
struct SentText {
  std::string text;
  std::string host;
  bool model = false;  // In a request to a model's API.
};

struct ToolCall {
  std::string tool;
  codec::Json arguments;
  std::string result;
};

// What a verifier says of a cell.
struct Verified {
  Truth value = Truth::kUnknown;
  std::string reason;  // In its words, or why it said nothing.
};

struct Evidence {
  std::map<Channel, Completeness> channels;  // One that is not there is kAbsent.
  std::string answer;
  std::vector<ChangedPath> files;
  std::vector<StartedProgram> programs;
  std::vector<NetworkEvent> network;
  std::vector<std::string> findings;  // Titles.
  codec::Json state_before;
  codec::Json state_after;
  std::vector<ToolCall> tools;
  // Texts of the payload that a model was sent, and in which of its requests first (from 1).
  std::map<std::string, int64_t> delivered;
  // The texts that the run looked for: of the payload in what models were sent, and in what any
  // server was sent. Nothing if it was told none.
  std::optional<std::vector<std::string>> markers;
  std::optional<std::vector<std::string>> watched;
  std::vector<SentText> sent;
  // Runs the verifier of a check over the evidence; null where none is run.
  std::function<Verified(const Check&)> verify;

  Completeness Of(Channel channel) const {
    auto found = channels.find(channel);
    return found == channels.end() ? Completeness::kAbsent : found->second;
  }
};

}  // namespace eval
