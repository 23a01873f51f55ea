// SPDX-License-Identifier: Apache-2.0
#include "eval/show/page.h"

#include <algorithm>

#include "eval/show/text.h"
#include "report/page_parts.h"

namespace eval {
namespace {

using report::page::Card;
using report::page::Text;

constexpr size_t kShownBytes = 500;

constexpr std::string_view kStyle = R"css(
.scroll{overflow-x:auto}
.matrix{border-collapse:collapse;font-size:.87rem}
.matrix th,.matrix td{border:1px solid var(--line);padding:.4rem .6rem;text-align:left;
vertical-align:top;font-weight:400}
.matrix th{background:var(--head);font-weight:600;overflow-wrap:anywhere;min-width:7rem}
.matrix a{display:block;text-decoration:none;white-space:nowrap}
.matrix a.good{color:var(--good)}.matrix a.bad{color:var(--bad)}.matrix a.warn{color:var(--warn)}
.graded{margin:.2rem 0 .2rem 1rem;padding:0;list-style:none;overflow-wrap:anywhere}
.cell{border-top:1px solid var(--line);padding:.6rem 1rem}
.cell summary{cursor:pointer;overflow-wrap:anywhere}
.cell pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--code);padding:.6rem;
border-radius:6px;max-height:24rem;overflow-y:auto}
)css";

std::string_view ToneOf(const CellResult& cell) {
  if (cell.injection.empty()) {
    if (cell.verdict.utility.value == Truth::kUnknown) return "warn";
    return cell.verdict.utility.value == Truth::kTrue ? "good" : "bad";
  }
  switch (cell.verdict.outcome) {
    case Outcome::kSucceeded:
      return "bad";
    case Outcome::kResisted:
      return "good";
    case Outcome::kNotApplicable:
      return "soft";
    case Outcome::kAttempted:
    case Outcome::kInconclusive:
    case Outcome::kError:
      break;
  }
  return "warn";
}

// Not by colour alone.
std::string_view SignOf(std::string_view tone) {
  if (tone == "good") return "✓";
  if (tone == "bad") return "✗";
  return tone == "warn" ? "!" : "–";
}

std::string Span(std::string_view tone, const std::string& text) {
  return "<span class=\"" + std::string(tone) + "\">" + std::string(SignOf(tone)) + " " + text +
         "</span>";
}

std::string GradedHtml(const Graded& graded) {
  std::string html = "<li><b>" + std::string(Render(graded.value)) + "</b> <code>" +
                     Text(graded.criterion, kShownBytes) + "</code> " +
                     Text(graded.reason, kShownBytes);
  if (!graded.parts.empty()) {
    html += "<ul class=\"graded\">";
    for (const Graded& part : graded.parts) html += GradedHtml(part);
    html += "</ul>";
  }
  return html + "</li>\n";
}

std::string MatrixHtml(const Results& results) {
  std::vector<std::string> users;
  std::vector<std::string> injections;
  auto add = [](std::vector<std::string>* names, const std::string& name) {
    if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
  };
  for (const CellResult& cell : results.cells) {
    add(&users, cell.user);
    add(&injections, cell.injection);
  }
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\"><tr><th>user task</th>";
  for (const std::string& one : injections) {
    html += "<th>" + (one.empty() ? "control" : Text(one, 100)) + "</th>";
  }
  html += "</tr>\n";
  for (const std::string& user : users) {
    html += "<tr><th>" + Text(user, 100) + "</th>";
    for (const std::string& injection : injections) {
      html += "<td>";
      for (size_t i = 0; i < results.cells.size(); ++i) {
        const CellResult& cell = results.cells[i];
        if (cell.user != user || cell.injection != injection) continue;
        std::string_view tone = ToneOf(cell);
        std::string what(injection.empty() ? RenderUtility(cell)
                                           : std::string_view(Render(cell.verdict.outcome)));
        html += "<a class=\"" + std::string(tone) + "\" href=\"#c" + std::to_string(i) + "\">" +
                std::string(SignOf(tone)) + " " + what + "</a>";
        if (!injection.empty()) {
          html += "<span class=\"soft\">" + std::string(RenderUtility(cell)) + ", " +
                  std::string(Render(cell.verdict.delivery)) + "</span>";
        }
      }
      html += "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string RatesHtml(const Metrics& metrics) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\"><tr><th>rate</th>"
      "<th>count, and where the true rate lies (95 %)</th></tr>\n";
  for (const auto& [name, rate] : NamedRates(metrics)) {
    html += "<tr><td>" + name + "</td><td>" + Render(rate) + "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

std::string CellHtml(const CellResult& cell, size_t index) {
  std::string html = "<details class=\"cell\" id=\"c" + std::to_string(index) + "\"><summary><b>" +
                     Text(cell.user, 100) + "</b> " +
                     (cell.injection.empty() ? "control" : "with " + Text(cell.injection, 100)) +
                     ", trial " + std::to_string(cell.trial) + ": " +
                     Span(ToneOf(cell), Text(RenderOutcome(cell))) + ", task " +
                     std::string(RenderUtility(cell)) + "</summary>\n<ul class=\"graded\">";
  if (!cell.ending_reason.empty()) html += "<li>" + Text(cell.ending_reason) + "</li>";
  html += "<li>Task</li>" + GradedHtml(cell.verdict.utility);
  if (cell.verdict.security) {
    html += "<li>Attack</li>" + GradedHtml(*cell.verdict.security) + "<li>Delivery: <b>" +
            std::string(Render(cell.verdict.delivery)) + "</b> " +
            Text(cell.verdict.delivery_reason, kShownBytes) + "</li>";
    for (const std::string& vector : cell.vectors)
      html += "<li>Payload in " + Text(vector, 300) + "</li>";
  }
  for (const std::string& attack : cell.verdict.unspecific) {
    html += "<li class=\"warn\">! The check of " + Text(attack, 100) +
            " also holds here, without an injection.</li>";
  }
  html += "<li>Evidence:";
  for (const auto& [channel, completeness] : cell.channels) {
    html += " " + channel + " " + completeness + ";";
  }
  html += " <a href=\"cells/" + Text(cell.Name(), 400) +
          "/report/report.html\">report of the run</a></li></ul>\n";
  if (!cell.answer.empty()) html += "<pre tabindex=\"0\">" + Text(cell.answer, 4000) + "</pre>\n";
  return html + "</details>\n";
}

}  // namespace

std::string RenderPage(const Results& results) {
  const Metrics metrics = MetricsOf(results);
  const Rate& rate = metrics.attack_success;
  const bool unknown =
      metrics.inconclusive.count + metrics.errors.count + metrics.agent_compromise.count > 0;
  std::string_view tone = rate.count > 0 ? "bad" : unknown ? "warn" : "good";
  std::string title = "Evaluation of " + Text(results.suite, 100);
  std::string cells;
  for (size_t i = 0; i < results.cells.size(); ++i) cells += CellHtml(results.cells[i], i);
  std::string notes;
  for (const std::string& note : NotesOf(results)) {
    notes += "<div class=\"cell\">" + Text(note) + "</div>\n";
  }
  return report::page::PageHead(title, kStyle) + "<header><h1><span class=\"badge " +
         std::string(tone) + "\">" + std::string(SignOf(tone)) + " " + std::to_string(rate.count) +
         " of " + std::to_string(rate.all) + " attacks succeeded</span> " + title +
         "</h1><p class=\"status\"><span class=\"part\">" + std::to_string(results.cells.size()) +
         " cells</span><span class=\"part\">suite " + Text(results.suite_sha256.substr(0, 12)) +
         "</span></p><br></header>\n<main>\n" + Card("Tasks and injections", MatrixHtml(results)) +
         Card("Rates", RatesHtml(metrics)) + (notes.empty() ? "" : Card("Notes", notes)) +
         Card("Cells", cells) + "</main></body></html>\n";
}

}  // namespace eval
