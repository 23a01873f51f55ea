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
  std::printf("--\nsucceeded=%d reason=%s\n", summary.succeeded, summary.reason.c_str());
  std::printf("version=%s model=%s\n", summary.agent_version.c_str(), summary.model.c_str());
  auto count = [](const char* name, int64_t value) {
    std::printf("%s=%lld ", name, static_cast<long long>(value));
  };
  count("turns", summary.turns);
  count("tool_calls", summary.tool_calls);
  count("retries", summary.retries);
  count("api_error_status", summary.api_error_status);
  std::printf("saw_result=%d\n", summary.saw_result);
  count("input", summary.tokens.input);
  count("output", summary.tokens.output);
  count("cache_read", summary.tokens.cache_read);
  count("cache_write", summary.tokens.cache_write);
  std::printf("cost=%.4f\n", summary.cost_usd.value_or(0));
  for (const std::string& denial : summary.permission_denials) {
    std::printf("denied=%s\n", denial.c_str());
  }
  std::printf("blocked=%s\nresult=%s\n", summary.blocked.c_str(), summary.result_text.c_str());
  return 0;
}
