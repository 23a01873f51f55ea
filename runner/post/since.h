// SPDX-License-Identifier: Apache-2.0
// Compares the findings of a run with those of the run that the comment was about before.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forge/comment.h"
#include "report/record.h"

namespace post {

// Returns a word for each finding of the agent, for CommentStamp::findings. It is the same in a
// later run for the same rule and file where the finding's lines are the same, or, if those are not
// known, its message. nullopt if the run did not judge the whole: a failed one, say.
std::optional<std::vector<std::string>> FindingWords(const report::RunRecord& record);

// Returns "2 fixed, 1 new since `ed864d1`", in Markdown, for a comment that replaces one with the
// stamp `there` and the text `text`; both are this program's. Empty if the two are not comparable,
// or about the same commit. The comment of the same run keeps what it says.
std::string DescribeSince(const forge::CommentStamp& there, std::string_view text,
                          const forge::CommentStamp& now);

}  // namespace post
