// SPDX-License-Identifier: Apache-2.0
#include "post/since.h"

#include <algorithm>

#include "codec/data/digest.h"
#include "report/verdict.h"

namespace post {
namespace {

constexpr size_t kWordDigits = 8;
constexpr std::string_view kSince = " new since `";

// Returns how many of `words` are not among `others`; equal words count one by one.
size_t CountMissing(std::vector<std::string> words, std::vector<std::string> others) {
  std::sort(words.begin(), words.end());
  std::sort(others.begin(), others.end());
  std::vector<std::string> missing;
  std::set_difference(words.begin(), words.end(), others.begin(), others.end(),
                      std::back_inserter(missing));
  return missing.size();
}

// Returns the line that says so in a comment: the paragraph after the title's and the figures'. An
// agent's own words, which come later, may have such a line, too.
std::string SinceLine(std::string_view text) {
  size_t start = text.find("### ");
  for (int line = 0; line < 4 && start < text.size(); ++line) {
    start = std::min(text.find('\n', start), text.size() - 1) + 1;
  }
  if (start >= text.size()) return {};
  const std::string_view line = text.substr(start, text.find('\n', start) - start);
  return line.find(kSince) == std::string_view::npos ? "" : std::string(line);
}

}  // namespace

std::optional<std::vector<std::string>> FindingWords(const report::RunRecord& record) {
  if (!report::Succeeded(record.outcome.kind)) return {};
  std::vector<std::string> words;
  for (const report::Finding& finding : record.findings) {
    if (finding.source != report::FindingSource::kAgent) continue;
    const std::string& what = finding.line_hash.empty() ? finding.message : finding.line_hash;
    words.push_back(
        codec::Sha256Hex(finding.rule + '\0' + finding.path + '\0' + what).substr(0, kWordDigits));
  }
  if (words.size() > forge::kStampFindingsMax) return {};
  return words;
}

std::string DescribeSince(const forge::CommentStamp& there, std::string_view text,
                          const forge::CommentStamp& now) {
  if (there.started_ms == now.started_ms) return SinceLine(text);
  if (!there.findings || !now.findings) return {};
  if (there.head_sha.empty() || there.head_sha == now.head_sha) return {};
  const size_t fixed = CountMissing(*there.findings, *now.findings);
  const size_t added = CountMissing(*now.findings, *there.findings);
  if (there.findings->empty() && added == 0) return {};
  return std::to_string(fixed) + " fixed, " + std::to_string(added) + std::string(kSince) +
         there.head_sha.substr(0, 7) + "`";
}

}  // namespace post
