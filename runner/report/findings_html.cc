// SPDX-License-Identifier: Apache-2.0
// The findings on the page: grouped by file, and filtered without a script. Each filter is a group
// of radio buttons; a style rule hides what the chosen one does not select.
#include <algorithm>
#include <map>

#include "report/page_parts.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report::page {
namespace {

constexpr size_t kFilteredFrom = 12;  // A shorter list needs no filters.
constexpr size_t kChoicesMax = 12;    // Of one filter; the most frequent.

struct Listed {
  size_t index = 0;  // In RunRecord::findings.
  const Finding* finding = nullptr;
};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find('/');
  if (path.empty()) return "(no file)";
  return slash == std::string::npos ? "(top)" : path.substr(0, slash + 1);
}

// Those that did not decide, the worst first.
std::vector<Listed> ListOthers(const RunRecord& record) {
  std::vector<Listed> listed;
  for (size_t i = 0; i < record.findings.size(); ++i) {
    if (!record.findings[i].refuses) listed.push_back({i, &record.findings[i]});
  }
  std::stable_sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return a.finding->severity < b.finding->severity;
  });
  return listed;
}

// One filter: what findings have of it, and a class for each of its choices.
class Filter {
 public:
  using Read = std::string (*)(const Finding&);

  Filter(std::string_view name, char letter, Read read, const std::vector<Listed>& findings)
      : name_(name), letter_(letter), read_(read) {
    std::map<std::string, int64_t> counts;
    for (const Listed& one : findings) ++counts[read(*one.finding)];
    choices_.assign(counts.begin(), counts.end());
    std::stable_sort(choices_.begin(), choices_.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    choices_.resize(std::min(choices_.size(), kChoicesMax));
  }

  // Returns the class of the finding's choice, "r3"; empty if it has none.
  std::string ClassOf(const Finding& finding) const {
    const std::string value = read_(finding);
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i].first == value) return letter_ + std::to_string(i);
    }
    return {};
  }

  std::string RenderButtons(size_t all) const {
    if (choices_.size() < 2) return {};
    std::string out = "<fieldset><legend>" + name_ + "</legend>" +
                      Button("all", "all", static_cast<int64_t>(all), true);
    for (size_t i = 0; i < choices_.size(); ++i) {
      out += Button(std::to_string(i), Text(choices_[i].first, 60), choices_[i].second, false);
    }
    return out + "</fieldset>\n";
  }

  std::string RenderRules() const {
    std::string out;
    for (size_t i = 0; choices_.size() > 1 && i < choices_.size(); ++i) {
      const std::string choice = letter_ + std::to_string(i);
      const std::string chosen = "#findings:has(#by-" + choice + ":checked) ";
      out += chosen + ".cause:not(." + choice + ")," + chosen + "details:not(:has(." + choice +
             ")){display:none}\n";
    }
    return out;
  }

 private:
  std::string Button(const std::string& id, const std::string& label, int64_t count,
                     bool checked) const {
    return "<label><input type=\"radio\" name=\"by-" + std::string(1, letter_) + "\" id=\"by-" +
           letter_ + id + "\"" + (checked ? " checked" : "") + "> " + label + " <small>" +
           HumanCount(count) + "</small></label>";
  }

  std::string name_;
  char letter_;
  Read read_;
  std::vector<std::pair<std::string, int64_t>> choices_;
};

std::string RenderRow(const RunRecord& record, const Listed& one, const ChangesHtml& changes,
                      const std::string& classes) {
  const Severity severity = one.finding->severity;
  const char* kind = severity == Severity::kError     ? "bad"
                     : severity == Severity::kWarning ? "warn"
                                                      : "soft";
  return CauseRow({kind, severity == Severity::kNote ? "·" : "!", FindingText(record, *one.finding),
                   one.finding->source == FindingSource::kAgent ? "" : "Found by a gate.",
                   LinkTo(one.index, changes), classes});
}

// The rows of each file, folded together; the file with the worst finding first.
std::string RenderGroups(const RunRecord& record, const std::vector<Listed>& listed,
                         const std::vector<Filter>& filters, const ChangesHtml& changes) {
  std::vector<std::string> order;
  std::map<std::string, std::pair<int64_t, std::string>> files;
  for (const Listed& one : listed) {
    std::string classes;
    for (const Filter& filter : filters) classes += " " + filter.ClassOf(*one.finding);
    auto& [count, rows] = files[one.finding->path];
    if (count++ == 0) order.push_back(one.finding->path);
    rows += RenderRow(record, one, changes, classes);
  }
  std::string out;
  for (const std::string& path : order) {
    const auto& [count, rows] = files[path];
    out += "<details open><summary>" + (path.empty() ? "No file" : CodeText(path)) + " <small>" +
           HumanCount(count) + "</small></summary>\n" + rows + "</details>\n";
  }
  return out;
}

}  // namespace

std::string FindingText(const RunRecord& record, const Finding& finding) {
  std::string place = PlaceOf(finding);
  if (!place.empty()) {
    place = CodeText(place);
    const std::string url =
        PagesOf(record.event)
            .File(record.event.head_sha, record.changes.prefix + finding.path, finding.line);
    if (!url.empty()) place = "<a href=\"" + Text(url) + "\" rel=\"noreferrer\">" + place + "</a>";
    place += " ";
  }
  return "<b>" + Text(finding.rule, 100) + "</b> " + place + SentenceText(finding.message, 1000);
}

std::string RenderFindings(const RunRecord& record, const ChangesHtml& changes) {
  std::vector<Listed> listed = ListOthers(record);
  if (listed.empty()) return {};
  const size_t all = listed.size();
  listed.resize(std::min(all, kRowsMax));
  std::string body;
  if (all < kFilteredFrom) {
    for (const Listed& one : listed) body += RenderRow(record, one, changes, "");
  } else {
    const std::vector<Filter> filters = {
        Filter(
            "Severity", 's', [](const Finding& finding) { return Render(finding.severity); },
            listed),
        Filter(
            "Rule", 'r', [](const Finding& finding) { return finding.rule; }, listed),
        Filter(
            "Folder", 'd', [](const Finding& finding) { return FolderOf(finding.path); }, listed)};
    std::string rules;
    std::string buttons;
    for (const Filter& filter : filters) {
      rules += filter.RenderRules();
      buttons += filter.RenderButtons(listed.size());
    }
    body = "<style>\n" + rules + "</style>\n<div class=\"filters\">\n" + buttons + "</div>\n" +
           RenderGroups(record, listed, filters, changes);
  }
  return Card("Findings <small>" + CountFindings(record.findings) + "</small>",
              body + MoreRows(all, kRowsMax, "findings.sarif"), "findings");
}

}  // namespace report::page
