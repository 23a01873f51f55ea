// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "codec/text/neutral.h"
#include "report/page_parts.h"
#include "report/patch_file.h"
#include "report/verdict.h"
#include "report/word_diff.h"
#include "report/wording.h"

namespace report::page {
namespace {

using RowKind = PatchRow::Kind;

constexpr size_t kRowsAllMax = 6000;
constexpr size_t kHtmlBytesMax = size_t{4} << 20;
constexpr size_t kLineBytesMax = 1000;
constexpr size_t kHunkRowsOpen = 60;  // The first rows of a longer hunk; the rest is folded.
constexpr size_t kFileRowsOpen = 600;
constexpr size_t kDeletedRowsOpen = 20;
constexpr size_t kFindingsMax = 200;  // Beside one file.

// Returns what is shown of a line: no credential, and no part of one because words are marked in
// it.
std::string Shown(std::string_view line) {
  return codec::CutUtf8(codec::ValidUtf8(codec::RedactTokens(line)), kLineBytesMax);
}

std::string Marked(std::string_view line, const std::vector<WordSpan>& spans,
                   std::string_view element) {
  std::string out;
  for (const WordSpan& span : spans) {
    const std::string text = codec::HtmlText(line.substr(span.begin, span.end - span.begin));
    out += span.differs
               ? "<" + std::string(element) + ">" + text + "</" + std::string(element) + ">"
               : text;
  }
  return out;
}

// The HTML of each row of a hunk; lines that replace each other have their words marked.
std::vector<std::string> RenderTexts(const std::vector<PatchRow>& rows) {
  std::vector<std::string> shown;
  for (const PatchRow& row : rows) shown.push_back(Shown(row.text));
  std::vector<std::string> html;
  for (const std::string& text : shown) html.push_back(codec::HtmlText(text));
  for (size_t at = 0; at < rows.size();) {
    size_t added = at;
    while (added < rows.size() && rows[added].kind == RowKind::kRemoved) ++added;
    size_t end = added;
    while (end < rows.size() && rows[end].kind == RowKind::kAdded) ++end;
    if (added > at && end > added) {
      const std::vector<std::string_view> before(shown.begin() + static_cast<ptrdiff_t>(at),
                                                 shown.begin() + static_cast<ptrdiff_t>(added));
      const std::vector<std::string_view> after(shown.begin() + static_cast<ptrdiff_t>(added),
                                                shown.begin() + static_cast<ptrdiff_t>(end));
      for (const auto& [i, j] : PairLines(before, after)) {
        const WordDiff diff = CompareWords(before[i], after[j]);
        html[at + i] = Marked(before[i], diff.before, "del");
        html[added + j] = Marked(after[j], diff.after, "ins");
      }
    }
    at = std::max(end, at + 1);
  }
  return html;
}

std::string LineNumber(int64_t line) { return line > 0 ? std::to_string(line) : ""; }

std::string RenderRow(const PatchRow& row, const std::string& text) {
  if (row.kind == RowKind::kNote) {
    return "<tr class=\"h\"><td></td><td></td><td>" + text + "</td></tr>\n";
  }
  const char* kind = row.kind == RowKind::kAdded     ? " class=\"a\""
                     : row.kind == RowKind::kRemoved ? " class=\"d\""
                                                     : "";
  return "<tr" + std::string(kind) + "><td>" + LineNumber(row.old_line) + "</td><td>" +
         LineNumber(row.new_line) + "</td><td>" + text + "</td></tr>\n";
}

std::string RenderFinding(const Finding& finding, const std::string& id) {
  const std::string kind = finding.refuses || finding.severity == Severity::kError ? "bad"
                           : finding.severity == Severity::kWarning                ? "warn"
                                                                                   : "note";
  std::string out = "<div class=\"finding " + kind + "\" id=\"" + id + "\"><b>" +
                    (finding.refuses ? "✕ " : "") + Text(finding.rule, 100) + "</b>" +
                    (finding.source == FindingSource::kAgent ? " (the agent)" : "") + ": " +
                    Text(finding.message, 1000);
  if (finding.suggestion) {
    out += "<details><summary>Suggested instead</summary><pre>" + Text(*finding.suggestion, 4000) +
           "</pre></details>";
  }
  return out + "</div>";
}

// One file of the list, its part of the patch, and what was found in it.
class FileHtml {
 public:
  // `path`: of a file in the list of changes; else empty.
  FileHtml(const RunRecord& record, const std::string& path) : listed_(!path.empty()) {
    for (size_t i = 0; i < record.findings.size() && findings_.size() < kFindingsMax; ++i) {
      if (path.empty() || record.findings[i].path != path) continue;
      findings_.emplace(i, &record.findings[i]);
      refused_ = refused_ || record.findings[i].refuses;
    }
  }

  bool refused() const { return refused_; }
  size_t count() const { return findings_.size(); }

  // Renders at most `rows_max` rows.
  std::string RenderBody(const PatchFile& part, size_t rows_max, ChangesHtml* changes) {
    std::string body;
    // The title says what became of a listed file.
    for (size_t i = 0; !listed_ && i < part.facts.size(); ++i) {
      body += "<p class=\"fact\">" + Text(part.facts[i], 500) + "</p>";
    }
    std::string hunks;
    size_t left = rows_max;
    for (const std::vector<PatchRow>& rows : part.hunks) {
      if (left == 0) break;
      const size_t shown = std::min(rows.size(), left);
      left -= shown;
      hunks += RenderHunk({rows.begin(), rows.begin() + static_cast<ptrdiff_t>(shown)}, changes);
    }
    if (part.rows > rows_max) hunks += "<p class=\"fact\">… more in changes.patch</p>";
    // Those whose lines the patch does not show.
    std::string loose;
    for (const auto& [i, finding] : findings_) {
      if (changes->anchors.count(i) == 0) loose += Place(i, *finding, changes);
    }
    return loose + body + hunks;
  }

 private:
  std::string Place(size_t i, const Finding& finding, ChangesHtml* changes) {
    const std::string id = "x" + std::to_string(i);
    changes->anchors[i] = id;
    return RenderFinding(finding, id);
  }

  std::string RenderHunk(const std::vector<PatchRow>& rows, ChangesHtml* changes) {
    const std::vector<std::string> texts = RenderTexts(rows);
    std::string open;
    std::string folded;
    bool found = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool fold = rows.size() > kHunkRowsOpen + 10 && i >= kHunkRowsOpen;
      std::string row = RenderRow(rows[i], texts[i]);
      for (const auto& [at, finding] : findings_) {
        const int last = std::max(finding->line, finding->end_line);
        if (rows[i].new_line == 0 || rows[i].new_line != last || changes->anchors.count(at) > 0) {
          continue;
        }
        row += "<tr class=\"f\"><td></td><td></td><td>" + Place(at, *finding, changes) +
               "</td></tr>\n";
        found = found || fold;
      }
      (fold ? folded : open) += row;
    }
    const std::string table = "<table class=\"patch\"><tbody>\n";
    std::string out = table + open + "</tbody></table>\n";
    if (!folded.empty()) {
      out += "<details class=\"more\"" + std::string(found ? " open" : "") + "><summary>" +
             Plural(static_cast<int64_t>(rows.size() - kHunkRowsOpen), "more line") + "</summary>" +
             table + folded + "</tbody></table></details>\n";
    }
    return out;
  }

  bool listed_;
  std::map<size_t, const Finding*> findings_;  // The findings by their index in the record.
  bool refused_ = false;
};

std::string Sizes(const ChangedFile& file) {
  if (file.binary)
    return "<span class=\"soft\">" + Text(HumanBytes(static_cast<double>(file.bytes))) + "</span>";
  std::string out;
  if (file.added_lines > 0)
    out += "<span class=\"good\">+" + HumanCount(file.added_lines) + "</span> ";
  if (file.removed_lines > 0)
    out += "<span class=\"bad\">−" + HumanCount(file.removed_lines) + "</span>";
  return out;
}

std::string Name(const ChangedFile& file) {
  const std::string name = "<code>" + Text(file.path, 1000) + "</code>";
  return file.old_path.empty() ? name : "<code>" + Text(file.old_path, 1000) + "</code> → " + name;
}

// "100644 → 100755" in words.
std::string Modes(const ChangedFile& file) {
  std::string out;
  if (file.new_mode == "100755" && file.old_mode != "100755")
    out += Tag("warn", "executable +x") + " ";
  if (file.old_mode == "100755" && file.new_mode == "100644")
    out += Tag("plain", "executable −x") + " ";
  if (file.new_mode == "120000") out += Tag("warn", "symbolic link") + " ";
  if (file.new_mode == "160000") out += Tag("warn", "submodule") + " ";
  return out;
}

// A link to the file as the run saw it; empty if the forge has none.
std::string LinkToHead(const RunRecord& record, const ChangedFile& file) {
  const std::string& before = file.old_path.empty() ? file.path : file.old_path;
  if (file.state == FileState::kCreated) return {};
  const std::string url =
      PagesOf(record.event).File(record.event.head_sha, record.changes.prefix + before, 0);
  return url.empty() ? ""
                     : " <a class=\"go\" href=\"" + Text(url) + "\" rel=\"noreferrer\">before</a>";
}

std::string Title(const ChangedFile& file, bool refused) {
  const char* kind = file.state == FileState::kCreated   ? "good"
                     : file.state == FileState::kDeleted ? "bad"
                                                         : "plain";
  return (refused ? "<b class=\"bad\">✕ refused</b> " : "") + Name(file) + " " +
         Tag(kind, Render(file.state)) + " " + Modes(file) +
         (file.binary ? Tag("plain", "binary") + " " : "") + Sizes(file);
}

// Returns the part of the patch for each file: by their order, or by name if the patch has fewer.
std::vector<const PatchFile*> Match(const std::vector<PatchFile>& parts, size_t files) {
  std::vector<const PatchFile*> matched(files, nullptr);
  if (parts.size() != files) return matched;
  for (size_t i = 0; i < files; ++i) matched[i] = &parts[i];
  return matched;
}

struct Entry {
  const ChangedFile* file = nullptr;  // Null if known from the patch alone.
  const PatchFile* part = nullptr;
  size_t index = 0;
  bool refused = false;
  bool plain = false;  // A mode, a rename or a binary: nothing to read.
};

std::vector<Entry> ListEntries(const ReportInput& input, const std::vector<PatchFile>& parts) {
  std::vector<Entry> entries;
  const std::vector<const PatchFile*> matched = Match(parts, input.files.size());
  for (size_t i = 0; i < input.files.size(); ++i) {
    const ChangedFile& file = input.files[i];
    const bool refused = FileHtml(input.record, file.path).refused();
    const bool lines = file.added_lines > 0 || file.removed_lines > 0;
    entries.push_back({&file, matched[i], i, refused, file.binary || !lines});
  }
  if (parts.size() != input.files.size()) {
    for (const PatchFile& part : parts) entries.push_back({nullptr, &part, entries.size()});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.refused != b.refused) return a.refused;
    return !a.plain && b.plain;
  });
  return entries;
}

std::string RenderList(const std::vector<Entry>& entries) {
  std::string out = "<nav class=\"files\" aria-label=\"Changed files\">\n";
  std::string_view group;
  for (size_t i = 0; i < std::min(entries.size(), kRowsMax); ++i) {
    const Entry& entry = entries[i];
    if (entry.file == nullptr) continue;
    const std::string_view wanted = entry.refused ? "Refused"
                                    : entry.plain ? "Binary, mode, rename"
                                                  : "Changed";
    if (wanted != group) out += "<h3>" + std::string(group = wanted) + "</h3>\n";
    out += "<a href=\"#f" + std::to_string(entry.index) + "\"" +
           (entry.refused ? " class=\"bad\"" : "") + "><span>" + Name(*entry.file) +
           "</span><small>" + Sizes(*entry.file) + "</small></a>\n";
  }
  return out + "</nav>\n";
}

// `left`: rows that may still be shown.
std::string RenderEntry(const ReportInput& input, const Entry& entry, size_t* left,
                        ChangesHtml* changes) {
  FileHtml file(input.record, entry.file != nullptr ? entry.file->path : "");
  const PatchFile nothing;
  const PatchFile& part = entry.part != nullptr ? *entry.part : nothing;
  const size_t rows = std::min(part.rows, *left);
  *left -= rows;
  const std::string body = file.RenderBody(part, rows, changes);
  const std::string title = entry.file != nullptr ? Title(*entry.file, entry.refused) +
                                                        LinkToHead(input.record, *entry.file)
                                                  : "<code>" + Text(part.header, 1000) + "</code>";
  const std::string id = " id=\"f" + std::to_string(entry.index) + "\"";
  if (body.empty() || (entry.plain && rows == 0 && file.count() == 0)) {
    return "<div class=\"file plain\"" + id + ">" + title + "</div>\n";
  }
  const bool deleted = entry.file != nullptr && entry.file->state == FileState::kDeleted;
  const bool open = file.count() > 0 || rows <= (deleted ? kDeletedRowsOpen : kFileRowsOpen);
  return "<details class=\"file\"" + id + (open ? " open" : "") + "><summary>" + title +
         "</summary>\n" + body + "</details>\n";
}

std::string RenderNotes(const ReportInput& input) {
  std::string out;
  if (!input.record.changes.complete) {
    out +=
        "<p class=\"banner bad\">This list is incomplete: the collection of changes reached a "
        "limit.</p>\n";
  }
  if (input.patch.empty() && !input.files.empty()) {
    out +=
        "<p class=\"banner bad\">The patch contains a secret of this run, so it is not shown and "
        "not in the report.</p>\n";
  }
  if (input.record.changes.applied) {
    out += "<p class=\"banner good\">Applied to the checkout.</p>\n";
  }
  return out;
}

}  // namespace

ChangesHtml RenderChanges(const ReportInput& input) {
  ChangesHtml changes;
  const std::vector<PatchFile> parts =
      SplitPatch(input.shown_patch.empty() ? input.patch : input.shown_patch);
  const std::vector<Entry> entries = ListEntries(input, parts);
  if (entries.empty()) {
    changes.html = RenderNotes(input) + "<p class=\"soft\">The agent changed nothing.</p>\n";
    return changes;
  }
  std::string files;
  size_t left = kRowsAllMax;
  size_t shown = 0;
  for (; shown < std::min(entries.size(), kRowsMax); ++shown) {
    if (left == 0 || files.size() > kHtmlBytesMax) break;
    files += RenderEntry(input, entries[shown], &left, &changes);
  }
  if (shown < entries.size()) {
    files += "<p class=\"soft\">… and " +
             Plural(static_cast<int64_t>(entries.size() - shown), "more file") +
             " in <code>changes.patch</code></p>\n";
  }
  changes.html = RenderNotes(input) + "<div class=\"columns\">" + RenderList(entries) +
                 "<div class=\"diffs\">\n" + files + "</div></div>\n";
  return changes;
}

}  // namespace report::page
