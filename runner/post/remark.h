// SPDX-License-Identifier: Apache-2.0
// The remarks that are posted about lines of a pull request: the agent's findings, and its changes
// as suggestions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forge/actions.h"
#include "forge/diff_file.h"
#include "report/read.h"

namespace post {

struct Remark;

// The digests by which a remark is known in later runs, though its line may move; in hexadecimal.
struct Fingerprint {
  std::string place;       // The digest of the rule and the path; 16 digits.
  std::string message;     // The digest of the message; 8 digits.
  std::string suggestion;  // The digest of the suggestion; 8 digits.

  static Fingerprint Of(const Remark& remark);
  // Reads what Text() wrote, at the beginning of `text`.
  static Fingerprint Read(std::string_view text);
  std::string Text() const { return place + message + suggestion; }

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

struct Remark {
  // The report's finding; null for a change of the agent's apart from findings.
  const report::Finding* finding = nullptr;
  report::Severity severity = report::Severity::kNote;
  std::string rule;
  std::string message;
  std::string path;  // Relative to the repository's top; empty if about the whole.
  int line = 0;      // From 1, in the pull request's version of the file; 0 for no line.
  int end_line = 0;  // Not before `line`.
  // The finding's last line, if a comment cannot reach from `line` to it; otherwise 0.
  int far_line = 0;
  // The lines where the agent saw them, if they are not there now and were not found: then `line`
  // is 0.
  int seen_line = 0;
  int seen_end_line = 0;
  // The text that those lines should become, with its newlines; empty to remove them.
  std::optional<std::string> suggestion;
  std::string withheld = {};  // Why there is none, though there was: a gate's reason.
  Fingerprint fingerprint = {};
};

// Takes the suggestion away, which is not to be offered.
void Withhold(const std::string& why, Remark* remark);

// Returns the agent's findings in the report's order, then each of the agent's changes that
// replaces lines which `diff` shows, as it shows them. A change within the lines of a finding that
// has no suggestion becomes that finding's. `with_changes` is false if the changes are delivered
// otherwise.
std::vector<Remark> RemarksOf(const report::PostedReport& report,
                              const std::vector<forge::DiffFile>& diff, bool with_changes = true);

enum class Spot {
  kLines,    // Beside the lines.
  kFile,     // On the file: it is in the difference, the lines are not.
  kSummary,  // In the list of the comment.
};

struct Placed {
  Remark remark;
  Spot spot = Spot::kSummary;
};

struct PlacementLimits {
  size_t lines_max = 30;  // The lines that one review takes; more is noise.
  size_t files_max = 10;  // One request each.
};

// Places each remark: errors before warnings before notes, and in their order within. A remark
// whose first line is in the difference and whose last is not (or is in another hunk) keeps the
// first, names the others, and loses its suggestion. With `moved_on` (the pull request's head is
// another than the one that was reviewed) no line can be trusted: everything is for the summary.
std::vector<Placed> Place(std::vector<Remark> remarks, const std::vector<forge::DiffFile>& diff,
                          bool moved_on, const PlacementLimits& limits = {});

forge::Level LevelOf(report::Severity severity);

// Returns the text about lines that are not known in the head's file (HeadLines::lost), which
// stands before the message: "Lines 3 to 5 of the file that the agent saw, ...: ".
std::string SeenLinesText(int line, int end_line);

struct RemarkText {
  std::string markdown;
  bool suggests = false;  // It has a block that the forge can apply.
};

// Renders the text of a comment, in Markdown: severity, message, rule, and the suggestion. `fence`
// is the language of a block that the forge can apply to the lines of the comment ("suggestion" on
// GitHub, "suggestion:-N+0" on GitLab); if it is empty, the forge has none, and what should stand
// there is shown as a plain block. With `names_lines` the text names the lines, for a comment that
// does not stand at them.
RemarkText RenderRemark(const Remark& remark, const std::string& fence, bool names_lines);

}  // namespace post
