// SPDX-License-Identifier: Apache-2.0
#include "agent/dialect.h"
#include "codec/neutral.h"

namespace agent {
namespace {

class PlainDialect : public Dialect {
 public:
  void TakeLine(std::string_view line, std::vector<std::string>* entries) override {
    entries->push_back(LogEntry(line));
  }

  AgentSummary Finish(int exit_status) override {
    AgentSummary summary;
    summary.succeeded = exit_status == 0;
    summary.saw_result = true;
    if (!summary.succeeded) summary.reason = DescribeStatus(exit_status);
    return summary;
  }
};

}  // namespace

std::unique_ptr<Dialect> MakePlainDialect() { return std::make_unique<PlainDialect>(); }

// Made neutral first: an ANSI sequence inside a credential would hide it from the search.
std::string LogEntry(std::string_view text) {
  return codec::RedactTokens(codec::NeutralLine(text));
}

std::string DescribeStatus(int exit_status) {
  if (exit_status > 128 && exit_status <= 128 + 64) {
    return "the agent was killed by signal " + std::to_string(exit_status - 128);
  }
  return "the agent ended with status " + std::to_string(exit_status);
}

}  // namespace agent
