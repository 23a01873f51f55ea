// SPDX-License-Identifier: Apache-2.0
// The owner of a connection: the gateway asks for it (identity_asker.h), the supervisor answers
// (connection_owners.h). The gateway itself is confined and cannot see any process.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/decide/decide.h"

namespace caller {

// One end of a TCP connection, v4 as ::ffff:a.b.c.d, port in host order.
struct Endpoint {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The accepted connection as the client's own socket has it: `local` is the client's end, `remote`
// what it called connect(2) with. Where TPROXY captured it, that is what getsockname(2) says of the
// accepted socket, not the address of the listener.
struct Question {
  uint64_t number = 0;  // Chosen by the asker, repeated in the answer.
  Endpoint local;
  Endpoint remote;
};

// The owner. `refusal`, if not empty, says why its programs grant nothing, and `caller` names them
// for the records alone; it may still be the agent. With `stranger`, it is a process outside of the
// sandbox, which shares the loopback interface with it in tier landlock.
struct Owner {
  uint64_t number = 0;
  int32_t pid = 0;  // In the sandbox's own numbering.
  policy::Caller caller;
  std::string refusal;
  bool stranger = false;
  // The address that connect(2) was called with, where the supervisor has led the connection to the
  // gateway; a port of 0 otherwise.
  Endpoint destination = {};
};

// Returns the caller that a policy is asked about: the owner, without programs where they grant
// nothing.
policy::Caller Judged(const Owner& owner);

// The wire form (base/wire.h): fixed-size questions, answers of at most kOwnerBytesMax. nullopt
// for anything else.
constexpr size_t kQuestionBytes = 44;
constexpr size_t kOwnerBytesMax = 32768;
std::string RenderQuestion(const Question& question);
std::optional<Question> ParseQuestion(std::string_view bytes);
std::string RenderOwner(const Owner& owner);
std::optional<Owner> ParseOwner(std::string_view bytes);

}  // namespace caller
