// SPDX-License-Identifier: Apache-2.0
#include "agent/stream.h"

#include <utility>

#include "agent/dialect.h"

namespace agent {

StreamReader::StreamReader(std::string_view stream) : dialect_(MakeDialect(stream)) {}
StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

std::vector<std::string> StreamReader::Feed(std::string_view bytes) {
  std::vector<std::string> entries;
  while (!bytes.empty()) {
    const size_t line_end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, line_end);
    bytes.remove_prefix(line_end == std::string_view::npos ? bytes.size() : line_end + 1);
    if (!skipping_ && pending_.size() + piece.size() > kLineBytesMax) {
      skipping_ = true;
      pending_ = std::string();
      entries.push_back("(a line longer than 8 MiB is not shown)");
    }
    if (!skipping_) pending_ += piece;
    if (line_end == std::string_view::npos) break;
    if (!std::exchange(skipping_, false)) {
      const std::string line = std::exchange(pending_, {});
      dialect_->TakeLine(line, &entries);
    }
  }
  return entries;
}

std::vector<std::string> StreamReader::Close() {
  std::vector<std::string> entries;
  skipping_ = false;
  const std::string line = std::exchange(pending_, {});
  if (!line.empty()) dialect_->TakeLine(line, &entries);
  return entries;
}

AgentSummary StreamReader::Finish(int exit_status) {
  Close();
  return dialect_->Finish(exit_status);
}

}  // namespace agent
