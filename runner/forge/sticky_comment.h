// SPDX-License-Identifier: Apache-2.0
// One comment per pull request and marker, kept up to date.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/comment.h"
#include "forge/forge.h"

namespace forge {

struct StickyComment {
  // Markdown, already made harmless by the report. HTML comments are taken out of it here, so that
  // it can not carry a marker; bytes that are not UTF-8 become U+FFFD.
  std::string body;
  // The place of the whole text, for the note under a body that had to be cut: "the artifact of
  // RUN_URL".
  std::string full_text_at;
  std::optional<CommentStamp> stamp = std::nullopt;
  // Returns whether our comment, if it has this stamp, is to stay as it is. May be empty.
  std::function<bool(const CommentStamp& there)> stays = {};
  // Returns what is written instead of `body` where it replaces our comment with this stamp and
  // this text. May be empty.
  std::function<std::string(const CommentStamp& there, std::string_view text)> follow = {};
};

struct CommentOutcome {
  std::string comment_url;  // For people.
  int64_t comment_id = 0;
  bool created = false;  // False if an earlier comment was updated, or `stayed`.
  bool cut = false;      // The body was over the bound.
  bool stayed = false;   // True if nothing was written.
  // The comments that carry the marker and that another identity than the token's wrote, and one of
  // its names. They stay as they are.
  int others = 0;
  std::string other_author = {};
};

// Makes the one comment of `marker_key` say `comment`: updates ours if there is one, creates it
// otherwise. A comment counts as ours by its author (Forge::AskViewer), never by its marker alone.
// The key distinguishes the comments of several workflows on one pull request ("workflow/job"): at
// most 512 bytes, any. When two posts race, both end on the older comment. Fails as Client does,
// and with kInvalid without a pull request.
Result<CommentOutcome> KeepComment(Forge& forge, const std::string& marker_key,
                                   const StickyComment& comment, Deadline deadline);

}  // namespace forge
