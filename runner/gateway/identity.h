// SPDX-License-Identifier: Apache-2.0
// Who owns a connection: the gateway asks, the supervisor answers. The gateway itself is confined
// and may look at no process; the supervisor looks at the sandbox's processes from outside.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/decide.h"

namespace gateway {

// One end of a TCP connection, v4 as ::ffff:a.b.c.d, port in host order.
struct Endpoint {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The accepted connection as the client sees it: `local` is the client's end.
struct Question {
  uint64_t number = 0;  // Chosen by the asker, repeated in the answer.
  Endpoint local;
  Endpoint remote;
};

// The owner, or why there is none (`refusal` not empty): then the connection is denied.
struct Answer {
  uint64_t number = 0;
  int32_t pid = 0;  // In the sandbox's own numbering.
  policy::Caller caller;
  std::string refusal;
};

// The wire form: fixed-size questions, answers of at most kAnswerBytesMax. Parsing is strict: a
// wrong size, a length that does not add up or trailing bytes give nullopt.
constexpr size_t kQuestionBytes = 44;
constexpr size_t kAnswerBytesMax = 32768;
std::string RenderQuestion(const Question& question);
std::optional<Question> ParseQuestion(std::string_view bytes);
std::string RenderAnswer(const Answer& answer);
std::optional<Answer> ParseAnswer(std::string_view bytes);

// What is remembered between questions: the first hash seen of every executable (trust on first
// use) and fingerprints that make a second look cheap. One per run.
class IdentityCache {
 public:
  struct Fingerprint {
    uint64_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };

  // Reads the executable open at `fd` when its fingerprint is new. False when `path` was seen
  // before with other content.
  Result<bool> Unchanged(const std::string& path, int fd);

 private:
  struct Seen {
    Fingerprint fingerprint;
    std::array<uint8_t, 32> sha256{};
  };
  std::map<std::string, Seen> seen_;
};

// Finds the owner of `question`'s connection among the descendants of `init` (the sandbox's pid 1,
// as the caller numbers it), looking into init's network namespace. Total: what goes wrong is a
// refusal.
Answer Identify(const Question& question, pid_t init, IdentityCache& cache);

// Reads one question from `socket` and answers it. Call when the socket is readable. Fails when the
// peer is gone (kIo) or sends nonsense (kInvalid): the gateway is to be ended then.
Status AnswerIdentity(int socket, pid_t init, IdentityCache& cache);

}  // namespace gateway
