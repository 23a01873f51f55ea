// SPDX-License-Identifier: Apache-2.0
#include "post/remark.h"

#include <algorithm>
#include <utility>

#include "change/sections/patch_section.h"
#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "codec/text/prose.h"
#include "post/line_follower.h"

namespace post {
namespace {

constexpr size_t kMessageBytesMax = 4000;
constexpr size_t kReasonBytesMax = 500;
constexpr size_t kSuggestionBytesMax = 64 << 10;
constexpr size_t kSuggestionLinesMax = 100;
constexpr size_t kSuggestionsMax = 100;
constexpr size_t kPlaceDigits = 16;
constexpr size_t kWordsDigits = 8;
constexpr char kSuggestionRule[] = "suggested-change";

const forge::DiffFile* FileAt(const std::vector<forge::DiffFile>& diff, const std::string& path) {
  auto found = std::find_if(diff.begin(), diff.end(),
                            [&](const auto& file) { return !file.removed && file.path == path; });
  return found == diff.end() ? nullptr : &*found;
}

// Returns whether both lines can carry one comment.
bool Spans(const forge::DiffFile& file, int line, int end_line) {
  const forge::DiffLine* first = file.Find(line);
  const forge::DiffLine* last = file.Find(end_line);
  return first != nullptr && last != nullptr && first->hunk == last->hunk;
}

// One run of removed and added lines within a hunk of the agent's patch.
struct Edit {
  int line = 0;  // First old line it replaces.
  std::vector<std::string_view> removed;
  std::string added;
  bool whole_lines = true;  // Every added line ends with a newline.
};

// An edit that only inserts is made to replace the line before it, or behind it at the file's
// start.
class EditReader {
 public:
  std::vector<Edit> Read(const change::PatchHunk& hunk) {
    int64_t number = hunk.old_start;
    const change::PatchLine* before = nullptr;
    for (const change::PatchLine& line : hunk.lines) {
      if (line.kind == ' ') {
        Close(before, &line, number);
        before = &line;
        ++number;
        continue;
      }
      if (!open_) {
        open_ = true;
        edit_ = Edit();
        edit_.line = static_cast<int>(std::clamp<int64_t>(number, 0, 1 << 30));
      }
      if (line.kind == '-') {
        edit_.removed.push_back(line.text);
        ++number;
      } else {
        edit_.added.append(line.text).append(line.newline ? "\n" : "");
        edit_.whole_lines = edit_.whole_lines && line.newline;
      }
    }
    Close(before, nullptr, number);
    return std::move(edits_);
  }

 private:
  void Close(const change::PatchLine* before, const change::PatchLine* behind, int64_t number) {
    if (!std::exchange(open_, false)) return;
    if (edit_.removed.empty()) {
      // `before` may be an earlier edit's neighbour; it still stands right above this one.
      const bool above = before != nullptr && edit_.line > 1;
      const change::PatchLine* neighbour = above ? before : behind;
      if (neighbour == nullptr || !neighbour->newline) return;
      edit_.removed.push_back(neighbour->text);
      std::string kept = std::string(neighbour->text) + "\n";
      edit_.added = above ? kept + edit_.added : edit_.added + kept;
      edit_.line = static_cast<int>(above ? number - 1 : number);
    }
    edits_.push_back(std::move(edit_));
  }

  std::vector<Edit> edits_;
  Edit edit_;
  bool open_ = false;
};

// Returns whether the pull request shows exactly the lines that the edit replaces: the checkout may
// have been a merge with a base that moved on.
bool Replaces(const forge::DiffFile& file, const Edit& edit) {
  for (size_t i = 0; i < edit.removed.size(); ++i) {
    const forge::DiffLine* line = file.Find(edit.line + static_cast<int>(i));
    if (line == nullptr || line->text != edit.removed[i]) return false;
  }
  return Spans(file, edit.line, edit.line + static_cast<int>(edit.removed.size()) - 1);
}

// Returns whether the pull request's lines of the remark are `text` already.
bool Shows(const forge::DiffFile& file, const Remark& remark, std::string_view text) {
  for (int number = remark.line; number <= remark.end_line; ++number) {
    const forge::DiffLine* line = file.Find(number);
    if (line == nullptr || !text.starts_with(line->text + "\n")) return false;
    text.remove_prefix(line->text.size() + 1);
  }
  return remark.line > 0 && text.empty();
}

// "Lines 3 to 5"
std::string LinesText(int line, int end_line) {
  if (end_line <= line) return "Line " + std::to_string(line);
  return "Lines " + std::to_string(line) + " to " + std::to_string(end_line);
}

class RemarkReader {
 public:
  RemarkReader(const report::PostedReport& report, const std::vector<forge::DiffFile>& diff)
      : report_(report), diff_(diff), follower_(diff) {}

  std::vector<Remark> Read(bool with_changes) {
    for (const report::Finding& finding : report_.record.findings) {
      if (finding.source == report::FindingSource::kAgent) AddFinding(finding);
    }
    // A change that a gate refused is not for a click.
    bool refused = report_.record.outcome.kind == report::OutcomeKind::kRefused;
    Result<std::vector<change::PatchSection>> sections = change::ReadSections(report_.patch);
    if (with_changes && !refused && sections.ok()) {
      for (const change::PatchSection& section : sections.value()) AddChanges(section);
    }
    for (Remark& remark : remarks_) remark.fingerprint = Fingerprint::Of(remark);
    return std::move(remarks_);
  }

 private:
  void AddFinding(const report::Finding& finding) {
    Remark remark;
    remark.finding = &finding;
    remark.severity = finding.severity;
    remark.rule = finding.rule;
    remark.message = finding.message;
    if (!finding.path.empty()) remark.path = report_.record.changes.prefix + finding.path;
    const HeadLines lines = follower_.Find(finding, remark.path);
    remark.line = lines.line;
    remark.end_line = lines.end_line;
    if (lines.lost) {
      remark.seen_line = finding.line;
      remark.seen_end_line = std::max(finding.line, finding.end_line);
    }
    remark.suggestion = finding.suggestion;
    if (remark.suggestion && !remark.suggestion->empty() && !remark.suggestion->ends_with('\n')) {
      *remark.suggestion += '\n';
    }
    const forge::DiffFile* file = FileAt(diff_, remark.path);
    if (file != nullptr && remark.suggestion && Shows(*file, remark, *remark.suggestion)) {
      remark.suggestion.reset();  // A click would change nothing, and forges refuse it.
    }
    remarks_.push_back(std::move(remark));
  }

  void AddChanges(const change::PatchSection& section) {
    if (section.old_path.empty() || section.new_path != section.old_path) return;
    std::string path = report_.record.changes.prefix + section.new_path;
    const forge::DiffFile* file = FileAt(diff_, path);
    if (file == nullptr) return;
    for (const change::PatchHunk& hunk : section.hunks) {
      for (const Edit& edit : EditReader().Read(hunk)) AddEdit(path, *file, edit);
    }
  }

  void AddEdit(const std::string& path, const forge::DiffFile& file, const Edit& edit) {
    bool small = edit.removed.size() <= kSuggestionLinesMax &&
                 std::count(edit.added.begin(), edit.added.end(), '\n') <=
                     static_cast<int64_t>(kSuggestionLinesMax);
    if (!small || !edit.whole_lines || suggested_ == kSuggestionsMax || !Replaces(file, edit))
      return;
    ++suggested_;
    int end_line = edit.line + static_cast<int>(edit.removed.size()) - 1;
    for (Remark& remark : remarks_) {
      bool within = remark.path == path && !remark.suggestion && remark.rule != kSuggestionRule &&
                    remark.line > 0 && remark.line <= end_line && edit.line <= remark.end_line;
      if (!within) continue;
      remark.line = edit.line;
      remark.end_line = end_line;
      remark.suggestion = edit.added;
      return;
    }
    Remark remark;
    remark.rule = kSuggestionRule;
    remark.message = "The agent suggests this change.";
    remark.path = path;
    remark.line = edit.line;
    remark.end_line = end_line;
    remark.suggestion = edit.added;
    remarks_.push_back(std::move(remark));
  }

  const report::PostedReport& report_;
  const std::vector<forge::DiffFile>& diff_;
  LineFollower follower_;
  std::vector<Remark> remarks_;
  size_t suggested_ = 0;
};

}  // namespace

Fingerprint Fingerprint::Of(const Remark& remark) {
  std::string change = remark.suggestion ? "+" + *remark.suggestion : "";
  if (!remark.withheld.empty()) change = "!" + remark.withheld;
  return {codec::Sha256Hex(remark.rule + '\0' + remark.path).substr(0, kPlaceDigits),
          codec::Sha256Hex(remark.message).substr(0, kWordsDigits),
          codec::Sha256Hex(change).substr(0, kWordsDigits)};
}

Fingerprint Fingerprint::Read(std::string_view text) {
  Fingerprint read;
  for (auto [part, digits] :
       {std::pair(&read.place, kPlaceDigits), std::pair(&read.message, kWordsDigits),
        std::pair(&read.suggestion, kWordsDigits)}) {
    *part = text.substr(0, digits);
    text.remove_prefix(part->size());
  }
  return read;
}

void Withhold(const std::string& why, Remark* remark) {
  remark->suggestion.reset();
  remark->withheld = why;
  remark->fingerprint = Fingerprint::Of(*remark);
}

std::vector<Remark> RemarksOf(const report::PostedReport& report,
                              const std::vector<forge::DiffFile>& diff, bool with_changes) {
  return RemarkReader(report, diff).Read(with_changes);
}

std::vector<Placed> Place(std::vector<Remark> remarks, const std::vector<forge::DiffFile>& diff,
                          bool moved_on, const PlacementLimits& limits) {
  std::stable_sort(remarks.begin(), remarks.end(),
                   [](const Remark& a, const Remark& b) { return a.severity < b.severity; });
  std::vector<Placed> placed;
  size_t on_lines = 0;
  size_t on_files = 0;
  for (Remark& remark : remarks) {
    Placed here{std::move(remark), Spot::kSummary};
    Remark& at = here.remark;
    const forge::DiffFile* file = moved_on ? nullptr : FileAt(diff, at.path);
    if (file != nullptr && file->Find(at.line) != nullptr && on_lines < limits.lines_max) {
      here.spot = Spot::kLines;
      ++on_lines;
      if (!Spans(*file, at.line, at.end_line)) {
        at.far_line = std::exchange(at.end_line, at.line);
        if (at.suggestion) Withhold("its lines are not all in the diff", &at);
      }
    } else if (file != nullptr && file->Find(at.line) == nullptr && on_files < limits.files_max) {
      here.spot = Spot::kFile;
      ++on_files;
    }
    placed.push_back(std::move(here));
  }
  return placed;
}

std::string SeenLinesText(int line, int end_line) {
  return LinesText(line, end_line) + " of the file that the agent saw, which is another one here: ";
}

forge::Level LevelOf(report::Severity severity) {
  if (severity == report::Severity::kError) return forge::Level::kError;
  return severity == report::Severity::kWarning ? forge::Level::kWarning : forge::Level::kNotice;
}

RemarkText RenderRemark(const Remark& remark, const std::string& fence, bool names_lines) {
  RemarkText rendered;
  std::string& text = rendered.markdown;
  text = "**" + report::Render(remark.severity) + "** ";
  if (remark.seen_line > 0) {
    text += SeenLinesText(remark.seen_line, remark.seen_end_line);
  } else if ((names_lines || remark.far_line > 0) && remark.line > 0) {
    text += LinesText(remark.line, std::max(remark.end_line, remark.far_line)) + ": ";
  }
  text += codec::MarkdownSentence(remark.message, kMessageBytesMax) + " (" +
          codec::MarkdownCode(remark.rule, 100) + ")\n";
  std::string why = codec::MarkdownText(remark.withheld, kReasonBytesMax);
  if (remark.suggestion) {
    std::optional<std::string> block =
        codec::MarkdownVerbatim(*remark.suggestion, fence, kSuggestionBytesMax);
    rendered.suggests = block.has_value() && !fence.empty();
    if (block) text += "\n" + *block;
    if (!block) {
      why =
          "it has characters that would not arrive as they are, or a line that begins like a "
          "command of a forge";
    }
  }
  if (!why.empty()) text += "\nThere is a change for it that is not offered: " + why + ".\n";
  return rendered;
}

}  // namespace post
