// SPDX-License-Identifier: Apache-2.0
#include "eval/show/text.h"

#include <algorithm>

#include "codec/text/neutral.h"

namespace eval {
namespace {

constexpr size_t kReasonBytes = 300;

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

// The attacks whose checks hold without them.
std::vector<std::string> UnspecificLines(const Results& results) {
  struct Seen {
    std::string attack;
    std::string first;  // The cell's name.
    size_t count = 0;
  };
  std::vector<Seen> seen;
  size_t controls = 0;
  for (const CellResult& cell : results.cells) {
    controls += cell.injection.empty() ? 1 : 0;
    for (const std::string& attack : cell.verdict.unspecific) {
      auto known = std::find_if(seen.begin(), seen.end(),
                                [&](const Seen& one) { return one.attack == attack; });
      if (known == seen.end()) known = seen.insert(seen.end(), {attack, cell.Name()});
      ++known->count;
    }
  }
  std::vector<std::string> lines;
  for (const Seen& one : seen) {
    lines.push_back("the check of '" + one.attack + "' also holds without an injection, in " +
                    std::to_string(one.count) + " of " + std::to_string(controls) + " controls (" +
                    one.first + "): it is not specific");
  }
  return lines;
}

}  // namespace

std::vector<std::string> NotesOf(const Results& results) {
  std::vector<std::string> notes = UnspecificLines(results);
  notes.insert(notes.end(), results.notes.begin(), results.notes.end());
  if (!results.missing.empty()) {
    notes.push_back(std::to_string(results.missing.size()) + " cells were not run, the first " +
                    results.missing.front());
  }
  return notes;
}

std::vector<std::pair<std::string, Rate>> NamedRates(const Metrics& metrics) {
  return {{"benign utility", metrics.benign_utility},
          {"utility under attack", metrics.utility_under_attack},
          {"utility without a compromise", metrics.secure_utility},
          {"attacks succeeded, of all", metrics.attack_success},
          {"attacks succeeded, of those delivered", metrics.attack_success_reached},
          {"agent compromised, blocked or not", metrics.agent_compromise},
          {"delivered", metrics.coverage},
          {"inconclusive", metrics.inconclusive},
          {"errors", metrics.errors}};
}

std::string_view RenderUtility(const CellResult& cell) {
  switch (cell.verdict.utility.value) {
    case Truth::kTrue:
      return "solved";
    case Truth::kFalse:
      return "not solved";
    case Truth::kUnknown:
      break;
  }
  return "unknown";
}

std::string RenderOutcome(const CellResult& cell) {
  if (cell.injection.empty()) return cell.ending == Ending::kEnded ? "control" : "error";
  std::string text(Render(cell.verdict.outcome));
  if (cell.verdict.delivery_unobserved) text += " (delivery not observed)";
  return text;
}

std::string ReasonOf(const CellResult& cell) {
  const Verdict& verdict = cell.verdict;
  if (!verdict.security) {
    bool solved = verdict.utility.value == Truth::kTrue;
    return solved ? "" : verdict.utility.criterion + ": " + verdict.utility.reason;
  }
  switch (verdict.outcome) {
    case Outcome::kError:
      return cell.ending_reason;
    case Outcome::kNotApplicable:
      return verdict.delivery_reason;
    case Outcome::kInconclusive:
      return verdict.security->value == Truth::kFalse ? verdict.delivery_reason
                                                      : verdict.security->reason;
    case Outcome::kSucceeded:
    case Outcome::kAttempted:
    case Outcome::kResisted:
      break;
  }
  return verdict.security->value == Truth::kTrue ? verdict.security->reason : "";
}

std::string RenderTable(const Results& results) {
  size_t name_width = 4;
  for (const CellResult& cell : results.cells)
    name_width = std::max(name_width, cell.Name().size());
  std::string text =
      Padded("cell", name_width) + "  utility     outcome         delivery     why\n";
  for (const CellResult& cell : results.cells) {
    std::string delivery(cell.injection.empty() ? "" : Render(cell.verdict.delivery));
    std::string line = Padded(cell.Name(), name_width) + "  " +
                       Padded(std::string(RenderUtility(cell)), 10) + "  " +
                       Padded(RenderOutcome(cell), 14) + "  " + Padded(delivery, 11) + "  " +
                       codec::NeutralLine(ReasonOf(cell), kReasonBytes);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  text += "\n";
  for (const auto& [name, rate] : NamedRates(MetricsOf(results))) {
    text += Padded(name, 38) + "  " + Render(rate) + "\n";
  }
  for (const std::string& note : NotesOf(results)) {
    text += "note: " + codec::NeutralLine(note) + "\n";
  }
  return text;
}

std::string RenderMarkdown(const Results& results) {
  std::string text = "## Evaluation of " + codec::MarkdownText(results.suite) + "\n\n";
  text += "| rate | count | 95 % interval |\n| --- | --- | --- |\n";
  for (const auto& [name, rate] : NamedRates(MetricsOf(results))) {
    std::string whole = Render(rate);
    size_t open = whole.find(" (");
    std::string interval = open == std::string::npos ? "" : whole.substr(open + 2);
    if (!interval.empty()) interval.pop_back();
    text += "| " + name + " | " + whole.substr(0, open) + " | " + interval + " |\n";
  }
  text +=
      "\n| user task | injection | trial | utility | outcome | delivery | why |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const CellResult& cell : results.cells) {
    std::string delivery(cell.injection.empty() ? "" : Render(cell.verdict.delivery));
    text += "| " + codec::MarkdownText(cell.user) + " | " + codec::MarkdownText(cell.injection) +
            " | " + std::to_string(cell.trial) + " | " + std::string(RenderUtility(cell)) + " | " +
            RenderOutcome(cell) + " | " + delivery + " | " +
            codec::MarkdownText(ReasonOf(cell), kReasonBytes) + " |\n";
  }
  for (const std::string& note : NotesOf(results)) {
    text += "\n> " + codec::MarkdownText(note) + "\n";
  }
  return text;
}

}  // namespace eval
