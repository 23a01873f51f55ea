// SPDX-License-Identifier: Apache-2.0
#include "agent/dialect.h"
#include "agent/stream.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

constexpr size_t kBlockedBytesMax = 200;

// Returns what Codex's own sandbox blocked, if this line says so; else empty. Codex 0.169 has two
// ways, and goes on to "turn.completed" and status 0 after both: a change of a file that ends as
// "failed" or "declined" in its JSON, and a line of its log on standard error. Its sandbox cannot
// start inside another one.
std::string BlockedByCodex(std::string_view line) {
  constexpr std::string_view kItem = R"({"type":"item.completed")";
  constexpr std::string_view kLog = " ERROR codex_core::";
  if (line.starts_with(kItem)) {
    const Result<codec::Json> event = codec::ParseJson(line);
    const codec::Json* item = event.ok() ? event.value().Find("item") : nullptr;
    if (item == nullptr || item->StringAt("type") != "file_change") return {};
    const std::string status = item->StringAt("status");
    if (status != "failed" && status != "declined") return {};
    return "a file change " + std::string(status == "failed" ? "failed" : "was declined");
  }
  const size_t log = line.find(kLog);
  if (log == std::string_view::npos) return {};
  for (std::string_view sign :
       {"blocked by read-only sandbox", "rejected by user approval settings",
        "bubblewrap is unavailable", "bwrap: "}) {
    if (line.find(sign, log) != std::string_view::npos) {
      return codec::NeutralLine(line.substr(log + 1), kBlockedBytesMax);
    }
  }
  return {};
}

class PlainDialect : public Dialect {
 public:
  bool verbatim() const override { return true; }

  void TakeLine(std::string_view line, Entries* entries) override {
    entries->Add(std::string(line));
    if (blocked_.empty()) blocked_ = BlockedByCodex(line);
  }

  AgentSummary Finish(int exit_status) override {
    AgentSummary summary;
    summary.succeeded = exit_status == 0;
    summary.saw_result = true;
    summary.blocked = blocked_;
    if (!summary.succeeded) summary.reason = DescribeStatus(exit_status);
    return summary;
  }

 private:
  std::string blocked_;
};

}  // namespace

std::unique_ptr<Dialect> MakePlainDialect() { return std::make_unique<PlainDialect>(); }

// Made visible first: an ANSI sequence inside a credential would hide it from the search.
std::string LogEntry(std::string_view text) {
  return codec::RedactTokens(codec::VisibleLine(text, StreamReader::kLineBytesMax));
}

std::string DescribeStatus(int exit_status) {
  if (exit_status > 128 && exit_status <= 128 + 64) {
    return "the agent was killed by signal " + std::to_string(exit_status - 128);
  }
  return "the agent ended with status " + std::to_string(exit_status);
}

}  // namespace agent
