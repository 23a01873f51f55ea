// SPDX-License-Identifier: Apache-2.0
// Every agent's stream: entries are one line each, figures are in bounds, and it does not
// matter where the bytes are cut. The first byte chooses the agent, the second the exit status.
#include <cstddef>
#include <cstdint>

#include "agent/dialect.h"
#include "agent/event.h"
#include "agent/stream.h"
#include "base/result.h"

namespace {

void CheckEntries(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) ENSURE(entry.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::vector<std::string_view> streams = agent::StreamNames();
  const std::string_view stream = streams[data[0] % streams.size()];
  const int status = data[1];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  agent::StreamReader whole(stream);
  std::vector<std::string> entries = whole.Feed(bytes);
  for (std::string& entry : whole.Close()) entries.push_back(std::move(entry));
  CheckEntries(entries);
  const agent::AgentSummary summary = whole.Finish(status);
  ENSURE(summary.succeeded == summary.reason.empty());
  ENSURE(status == 0 || !summary.succeeded || stream != "plain");
  for (const int64_t count : {summary.tokens.input, summary.tokens.output,
                              summary.tokens.cache_read, summary.tokens.cache_write}) {
    ENSURE(count >= 0 && count <= 2 * agent::kCountMax);
  }
  ENSURE(summary.result_text.size() <= agent::kResultBytesMax);
  ENSURE(summary.api_error_status >= 0 && summary.api_error_status < 1000);
  agent::StreamReader pieces(stream);
  std::vector<std::string> again;
  for (size_t at = 0; at < bytes.size(); at += 7) {
    for (std::string& entry : pieces.Feed(bytes.substr(at, 7))) again.push_back(std::move(entry));
  }
  for (std::string& entry : pieces.Close()) again.push_back(std::move(entry));
  ENSURE(again == entries);
  return 0;
}
