// SPDX-License-Identifier: Apache-2.0
// Reads a recorded agent stream from standard input as a run does. usage: agent_replay AGENT STATUS
#include <cstdio>
#include <cstdlib>

#include "agent/stream.h"

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  agent::StreamReader reader(argv[1]);
  char chunk[1000];  // Small and odd: lines are cut everywhere.
  for (size_t got = 0; (got = fread(chunk, 1, sizeof chunk, stdin)) > 0;) {
    for (const std::string& entry : reader.Feed({chunk, got})) std::printf("%s\n", entry.c_str());
  }
  for (const std::string& entry : reader.Close()) std::printf("%s\n", entry.c_str());
  const agent::AgentSummary summary = reader.Finish(std::atoi(argv[2]));
  std::printf("--\nsucceeded=%d reason=%s\nturns=%lld tool_calls=%lld input=%lld output=%lld\n",
              summary.succeeded, summary.reason.c_str(), static_cast<long long>(summary.turns),
              static_cast<long long>(summary.tool_calls),
              static_cast<long long>(summary.tokens.input),
              static_cast<long long>(summary.tokens.output));
  return 0;
}
