// SPDX-License-Identifier: Apache-2.0
#include "post/outcome_text.h"

#include <utility>

#include "codec/text/neutral.h"

namespace post {
namespace {

// Says that earlier posts were made with another token, whose comments this one may not change.
std::string OthersLine(const Outcome& outcome) {
  const int comments = outcome.comment.others;
  const int threads = outcome.delivered.others;
  if (comments + threads == 0) return {};
  auto count = [](int n, const std::string& what) {
    return n == 0 ? "" : std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string line = count(comments, "comment") + (comments > 0 && threads > 0 ? " and " : "") +
                     count(threads, "thread") + " with this marker: written with another token";
  const std::string& author = outcome.comment.other_author;
  if (!author.empty()) line += " (" + author + ")";
  return codec::NeutralLine(line + ", and left as they are") + "\n";
}

}  // namespace

codec::Json RenderOutcome(const Outcome& outcome) {
  const Delivered& delivered = outcome.delivered;
  codec::Json object;
  object.Set("comment_url", outcome.comment.comment_url)
      .Set("comment_id", outcome.comment.comment_id)
      .Set("created", outcome.comment.created)
      .Set("cut", outcome.comment.cut)
      .Set("on_lines", delivered.on_lines)
      .Set("on_files", delivered.on_files)
      .Set("in_summary", delivered.in_summary)
      .Set("nowhere", delivered.nowhere)
      .Set("resolved", delivered.resolved)
      .Set("settled", delivered.settled)
      .Set("of_others", outcome.comment.others + delivered.others)
      .Set("commit", outcome.patch.commit)
      .Set("verification", outcome.patch.verification)
      .Set("branch", outcome.patch.branch)
      .Set("pull_request_url", outcome.patch.url)
      .Set("how", outcome.patch.how)
      .Set("moved_on", outcome.moved_on)
      .Set("late", outcome.late)
      .Set("made", codec::Json::FromStrings(outcome.made))
      .Set("failed", codec::Json::FromStrings(outcome.failed))
      .Set("refused", codec::Json::FromStrings(outcome.refused));
  return object;
}

std::string PartsLine(const Outcome& outcome) {
  std::string line;
  for (const auto& [word, parts] :
       {std::pair("made ", &outcome.made), std::pair("failed ", &outcome.failed)}) {
    for (const std::string& part : *parts) {
      line += &part != &parts->front() ? ", " : (line.empty() ? "" : "; ") + std::string(word);
      line += part;
    }
  }
  return line;
}

std::string OutcomeLines(const Outcome& outcome) {
  const Delivered& delivered = outcome.delivered;
  std::string text;
  const std::string& url = outcome.comment.comment_url;
  if (outcome.late) return "kept " + url + ": it is about a later run or a newer commit\n";
  if (!url.empty()) text = (outcome.comment.created ? "created " : "updated ") + url + "\n";
  const int posted = delivered.on_lines + delivered.on_files + delivered.in_summary;
  if (posted + delivered.nowhere + delivered.resolved > 0) {
    text += "review: " + std::to_string(delivered.on_lines) + " on lines, " +
            std::to_string(delivered.on_files) + " on files, " +
            std::to_string(delivered.in_summary) + " in the comment only, " +
            std::to_string(delivered.resolved) + " resolved";
    if (delivered.nowhere > 0) text += ", " + std::to_string(delivered.nowhere) + " not posted";
    text += "\n";
  }
  if (delivered.settled > 0) {
    text += "review: " + std::to_string(delivered.settled) + " resolved by people, and left so\n";
  }
  text += OthersLine(outcome);
  if (!outcome.patch.commit.empty()) {
    text += "changes: commit " + outcome.patch.commit + " on " + outcome.patch.branch;
    text += outcome.patch.url.empty() ? "\n" : ", " + outcome.patch.url + "\n";
    const std::string& verification = outcome.patch.verification;
    if (!verification.empty() && verification != "verified") {
      text += "changes: not verified: " + codec::NeutralLine(verification) + "\n";
    }
    if (!outcome.patch.how.empty()) {
      text += codec::NeutralLine("changes: " + outcome.patch.how) + "\n";
    }
  }
  // A path may have line ends, which would make lines of their own.
  for (const std::string& refused : outcome.refused) {
    text += codec::NeutralLine("refused: " + refused) + "\n";
  }
  const std::string parts = PartsLine(outcome);
  if (!parts.empty()) text += "post: " + parts + "\n";
  return text;
}

}  // namespace post
