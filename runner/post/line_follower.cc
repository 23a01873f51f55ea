// SPDX-License-Identifier: Apache-2.0
#include "post/line_follower.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "report/findings.h"

namespace post {
namespace {

// Git abbreviates the names of blobs in a difference.
bool SameBlob(const std::string& shown, const std::string& seen) {
  constexpr size_t kDigitsMin = 7;
  return shown.size() >= kDigitsMin && seen.starts_with(shown);
}

}  // namespace

HeadLines LineFollower::Find(const report::Finding& finding, const std::string& path) {
  const HeadLines seen{finding.line, std::max(finding.line, finding.end_line)};
  if (finding.lines_sha256.empty() || finding.line <= 0) return seen;
  const auto file = std::find_if(diff_.begin(), diff_.end(), [&](const forge::DiffFile& candidate) {
    return !candidate.removed && candidate.path == path;
  });
  if (file == diff_.end() || SameBlob(file->blob, finding.blob)) return seen;
  const Starts& starts = StartsOf(*file, report::LinesInDigest(seen.line, seen.end_line));
  const auto start = starts.find(finding.lines_sha256);
  if (start == starts.end() || start->second == 0) return {0, 0, true};
  const int64_t end_line = int64_t{start->second} + seen.end_line - seen.line;
  return {start->second,
          static_cast<int>(std::min<int64_t>(end_line, std::numeric_limits<int>::max()))};
}

const LineFollower::Starts& LineFollower::StartsOf(const forge::DiffFile& file, size_t count) {
  auto [entry, added] = starts_.try_emplace({&file, count});
  if (!added) return entry->second;
  const std::vector<forge::DiffLine>& lines = file.lines;
  for (size_t first = 0; first + count <= lines.size(); ++first) {
    std::vector<std::string_view> window;
    for (size_t i = first; i < first + count && lines[i].hunk == lines[first].hunk; ++i) {
      window.push_back(lines[i].text);
    }
    if (window.size() < count) continue;
    auto [start, once] =
        entry->second.try_emplace(report::LinesDigest(window), lines[first].number);
    if (!once) start->second = 0;
  }
  return entry->second;
}

}  // namespace post
