// SPDX-License-Identifier: Apache-2.0
// One comment per pull request and marker, kept up to date.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"

namespace forge {

struct PostOptions {
  std::string api_url = "https://api.github.com";  // https, or http to a loopback address only.
  std::string repository;                          // "owner/name".
  int64_t proposal_number = 0;
  Secret token;
  // Tells the comments of several workflows on one pull request apart: "workflow/job". Any bytes.
  std::string marker_key;
  // Markdown, already made harmless by the report. HTML comments are taken out of it here, so that
  // it can not carry a marker; bytes that are not UTF-8 become U+FFFD.
  std::string body;
  // Where the whole text is, for the note under a body that had to be cut: "the artifact of
  // RUN_URL".
  std::string full_text_at;
  std::string ca_file;  // Empty: the system's bundle (net::SystemCaBundle).
  std::string proxy;  // Empty: none. "http://host:port" (HTTPS_PROXY, when the caller honours it).
};

struct PostOutcome {
  std::string comment_url;  // For people.
  int64_t comment_id = 0;
  bool created = false;  // False: an earlier comment of ours was updated.
  bool cut = false;      // The body was over the bound.
};

// Makes the one comment of `marker_key` say `body`: updates ours when there is one, creates it
// otherwise. A comment counts as ours by its author (GET /user, else GraphQL's viewer, else
// github-actions[bot]), never by its marker alone. When two posts race, both end on the older
// comment.
//   kSetup      no token, or one the forge does not know (401); an api_url that would show it in
//   clear kRefused    the token may not do this (403), the conversation is locked or gone (410)
//   kNotFound   no such pull request, or none this token may see (404)
//   kInvalid    a malformed repository or number; the forge calls the comment invalid (422)
//   kTemporary  rate limits, 5xx, unreachable or `deadline` passed, after retries
Result<PostOutcome> PostSticky(const PostOptions& options, Deadline deadline);

}  // namespace forge
