// SPDX-License-Identifier: Apache-2.0
#include "agent/stream.h"

#include <utility>

#include "agent/dialect.h"
#include "base/ascii.h"

namespace agent {
namespace {

constexpr size_t kWordBytesMax = size_t{16} << 10;
constexpr size_t kBeginningBytes = 256;

// Returns whether `c` can be part of a credential.
bool IsOfWord(char c) {
  return ascii::IsAlphanumeric(c) || std::string_view("_-.+/=").find(c) != std::string_view::npos;
}

}  // namespace

StreamReader::StreamReader(std::string_view stream)
    : dialect_(MakeDialect(stream)), entries_(std::make_unique<Entries>()) {}
StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

bool StreamReader::verbatim() const { return dialect_->verbatim(); }

std::vector<std::string> StreamReader::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t line_end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, line_end);
    bytes.remove_prefix(line_end == std::string_view::npos ? bytes.size() : line_end + 1);
    if (!verbatim() && !skipping_ && pending_.size() + piece.size() > kLineBytesMax) {
      skipping_ = true;
      pending_.append(piece.substr(0, kBeginningBytes));
      dialect_->TakeBeginning(std::string_view(pending_).substr(0, kBeginningBytes));
      pending_ = std::string();
      entries_->Add("(a line longer than 8 MiB is not shown)");
    }
    if (!skipping_) pending_ += piece;
    if (line_end == std::string_view::npos) break;
    if (!std::exchange(skipping_, false)) {
      const std::string line = std::exchange(pending_, {});
      entries_->Allow(line.size());
      dialect_->TakeLine(line, entries_.get());
    }
  }
  return entries_->Take();
}

// Cut in front of the last word, which may be a credential, unless that is very long.
std::string StreamReader::TakeUnfinished() {
  if (!verbatim() || pending_.size() <= kWaitingBytesMax) return {};
  size_t end = pending_.size();
  while (end > pending_.size() - kWordBytesMax && IsOfWord(pending_[end - 1])) --end;
  if (end == pending_.size() - kWordBytesMax) end = pending_.size();
  std::string beginning = pending_.substr(0, end);
  pending_.erase(0, end);
  return beginning;
}

std::vector<std::string> StreamReader::Close() {
  skipping_ = false;
  const std::string line = std::exchange(pending_, {});
  entries_->Allow(line.size());
  if (!line.empty()) dialect_->TakeLine(line, entries_.get());
  return entries_->Take();
}

RepeatFilter::RepeatFilter(std::string_view stream) : repeats_(MakeDialect(stream)->repeats()) {}

std::string_view RepeatFilter::Feed(std::string_view bytes) {
  if (repeats_.empty()) return bytes;
  left_.clear();
  while (!bytes.empty()) {
    if (line_ == Line::kBegins) {
      const bool alike = bytes.front() == repeats_[alike_];
      if (!alike) {
        left_ += repeats_.substr(0, alike_);
        line_ = Line::kStays;
        continue;
      }
      bytes.remove_prefix(1);
      if (++alike_ == repeats_.size()) line_ = Line::kGoes;
      continue;
    }
    const size_t line_end = bytes.find('\n');
    const size_t taken = line_end == std::string_view::npos ? bytes.size() : line_end + 1;
    if (line_ == Line::kStays) left_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (line_end == std::string_view::npos) break;
    line_ = Line::kBegins;
    alike_ = 0;
  }
  return left_;
}

AgentSummary StreamReader::Finish(int exit_status) {
  Close();
  return dialect_->Finish(exit_status);
}

}  // namespace agent
