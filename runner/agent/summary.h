// SPDX-License-Identifier: Apache-2.0
// The result of an agent as its stream reports it: success, usage, cost. A value that dialects
// fill and the record takes over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace agent {

// Counted as the model's provider counts them. `input` excludes what came from a cache.
struct Tokens {
  int64_t input = 0;
  int64_t output = 0;
  int64_t cache_read = 0;
  int64_t cache_write = 0;
};

// The result of an agent's run, judged from its stream and its exit status. Every text here was
// written by the agent: valid UTF-8 and bounded, but not yet neutral (codec/text/neutral.h).
struct AgentSummary {
  bool succeeded = false;     // Exit status 0 and the stream does not say otherwise.
  std::string reason;         // Why not, one line; empty on success.
  std::string agent_version;  // The version that the agent reports; empty if it does not.
  std::string model;          // The model that answered; empty if the stream names none.
  int64_t turns = 0;
  int64_t tool_calls = 0;
  int64_t retries = 0;             // Repeated requests to the model, if the agent reports them.
  Tokens tokens;                   // Tokens, side requests included if the agent reports them.
  std::optional<double> cost_usd;  // The cost by the agent's own price table.
  std::string result_text;         // Its last word, at most 64 KiB.
  int64_t api_error_status = 0;    // HTTP status of the model's refusal; 0 if none.
  std::vector<std::string>
      permission_denials;  // "Write /path": what the agent's own rules refused.
  // An action that a sandbox of the agent's own blocked, as its stream says; the agent may end with
  // 0 and claim success all the same.
  std::string blocked;
  bool saw_result = false;  // The stream came to its end; otherwise the figures are partial sums.
};

}  // namespace agent
