// SPDX-License-Identifier: Apache-2.0
#include "report/stats/tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "codec/text/neutral.h"
#include "report/page_parts.h"
#include "report/wording.h"

namespace report::stats {
namespace {

constexpr size_t kCellBytes = 120;

constexpr std::string_view kStyle = R"css(
.scroll{overflow-x:auto;background:linear-gradient(90deg,transparent,var(--bg) 70%) 100%/2rem 100% no-repeat
local,linear-gradient(90deg,transparent,var(--line)) 100%/.5rem 100% no-repeat}
.figures{border-collapse:collapse;width:100%;font-size:.9rem}
.figures th,.figures td{padding:.35rem 1rem;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line);overflow-wrap:break-word}
.figures th{font-weight:600;color:var(--soft);white-space:nowrap}
.figures .n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.scroll:focus-visible{outline:2px solid var(--link);outline-offset:-2px}
@media(max-width:44rem){.figures{width:max-content;min-width:100%}
.figures th,.figures td{padding:.35rem .6rem;max-width:16rem}}
)css";

std::string Fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

int64_t WholeOf(double number) { return std::llround(std::clamp(number, -9e18, 9e18)); }

// A number for a person; "–" if it is not known.
std::string Shown(Unit unit, const std::optional<double>& number) {
  if (!number) return "–";
  switch (unit) {
    case Unit::kCount:
      return HumanCount(WholeOf(*number));
    case Unit::kMilliseconds:
      return *number < 1000 ? Fixed(*number, 0) + " ms" : HumanDuration(*number / 1000);
    case Unit::kUsd:
      return HumanCost(*number);
    case Unit::kShare:
      return Fixed(100 * *number, 1) + " %";
    case Unit::kText:
    case Unit::kUrl:
      break;
  }
  return {};
}

bool IsText(const Column& column) {
  return column.unit == Unit::kText || column.unit == Unit::kUrl;
}

using Neutral = std::function<std::string(std::string_view)>;

std::string Shown(const Column& column, const Cell& cell, const Neutral& neutral) {
  return IsText(column) ? neutral(cell.text) : Shown(column.unit, cell.number);
}

// "1,204 runs, 2026-11-01 to 2026-11-30, $31.20", and what is missing of it.
std::string Line(const Overview& overview) {
  std::string line = Plural(overview.runs, "run");
  if (overview.runs > 0) {
    const std::string first = HumanDate(overview.first_ms).substr(0, 10);
    const std::string last = HumanDate(overview.last_ms).substr(0, 10);
    line += ", " + first + (first == last ? "" : " to " + last);
    line += ", " + Shown(Unit::kUsd, overview.cost_usd);
  }
  if (overview.cost_unknown > 0) {
    line += " without what " + Plural(overview.cost_unknown, "run") + " did not know";
  }
  if (overview.not_read > 0) {
    line += "; " + Plural(overview.not_read, "report") + " could not be read";
  }
  return line;
}

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, WidthOf(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string MoreLine(const Table& table) {
  return table.more == 0 ? "" : "and " + HumanCount(static_cast<int64_t>(table.more)) + " more";
}

std::string TextTable(const Table& table) {
  const auto plain = [](std::string_view text) { return codec::NeutralLine(text, kCellBytes); };
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : table.columns) lines[0].push_back(column.title);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      line.push_back(Shown(table.columns[i], row[i], plain));
    }
  }
  std::vector<size_t> widths(table.columns.size());
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], WidthOf(line[i]));
  }
  std::string text = table.title + "\n";
  for (const std::vector<std::string>& line : lines) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
      out += "  " + Padded(line[i], widths[i], !IsText(table.columns[i]));
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string more = MoreLine(table);
  return more.empty() ? text : text + "  " + more + "\n";
}

std::string MarkdownTable(const Table& table) {
  const auto neutral = [](std::string_view text) {
    return text.empty() ? std::string() : codec::MarkdownCode(text, kCellBytes);
  };
  std::string head = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    head += " " + column.title + " |";
    rule += IsText(column) ? " --- |" : " ---: |";
  }
  std::string text = "### " + table.title + "\n\n" + head + "\n" + rule + "\n";
  for (const std::vector<Cell>& row : table.rows) {
    text += "|";
    for (size_t i = 0; i < row.size(); ++i) {
      text += " " + Shown(table.columns[i], row[i], neutral) + " |";
    }
    text += "\n";
  }
  const std::string more = MoreLine(table);
  return more.empty() ? text : text + "\n" + more + "\n";
}

std::string PageTable(const Table& table) {
  const auto neutral = [](std::string_view text) { return page::Text(text, 4 * kCellBytes); };
  const auto cell = [&](size_t column, std::string_view tag, const std::string& html) {
    const bool number = !IsText(table.columns[column]);
    return "<" + std::string(tag) + (number ? " class=\"n\">" : ">") + html + "</" +
           std::string(tag) + ">";
  };
  // What is scrolled can be reached by keys, too.
  std::string html = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     std::string(table.title) + "\"><table class=\"figures\"><tr>";
  for (size_t i = 0; i < table.columns.size(); ++i) html += cell(i, "th", table.columns[i].title);
  html += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string shown = Shown(table.columns[i], row[i], neutral);
      const bool linked = table.columns[i].unit == Unit::kUrl && IsPlainUrl(row[i].text);
      html += cell(i, "td", linked ? "<a href=\"" + shown + "\">" + shown + "</a>" : shown);
    }
    html += "</tr>\n";
  }
  const std::string more = MoreLine(table);
  return html + "</table></div>" + (more.empty() ? "" : "<p class=\"soft\">" + more + "</p>");
}

}  // namespace

std::string RenderText(const Overview& overview) {
  std::string text = Line(overview) + "\n";
  for (const Table& table : overview.tables) {
    if (!table.rows.empty()) text += "\n" + TextTable(table);
  }
  return text;
}

std::string RenderMarkdown(const Overview& overview) {
  std::string text = "**" + Line(overview) + "**\n";
  for (const Table& table : overview.tables) {
    if (!table.rows.empty()) text += "\n" + MarkdownTable(table);
  }
  return text;
}

std::string RenderJson(const Overview& overview) {
  nlohmann::ordered_json all = {{"version", 1},
                                {"runs", overview.runs},
                                {"not_read", overview.not_read},
                                {"first_ms", overview.first_ms},
                                {"last_ms", overview.last_ms},
                                {"cost_usd", overview.cost_usd},
                                {"cost_unknown", overview.cost_unknown}};
  for (const Table& table : overview.tables) {
    nlohmann::ordered_json& rows = all[table.key] = nlohmann::ordered_json::array();
    for (const std::vector<Cell>& row : table.rows) {
      nlohmann::ordered_json& one = rows.emplace_back(nlohmann::ordered_json::object());
      for (size_t i = 0; i < row.size(); ++i) {
        nlohmann::ordered_json& value = one[table.columns[i].key];
        if (IsText(table.columns[i])) {
          value = codec::ValidUtf8(row[i].text);
        } else if (row[i].number && table.columns[i].unit == Unit::kCount) {
          value = WholeOf(*row[i].number);
        } else if (row[i].number) {
          value = *row[i].number;
        }
      }
    }
  }
  return all.dump(2) + "\n";
}

std::string RenderPage(const Overview& overview) {
  std::string html = page::PageHead("Runs of agents", kStyle) +
                     "<header><h1>Runs of agents</h1><p class=\"status\">" +
                     page::Text(Line(overview)) + "</p><br></header>\n<main>\n";
  for (const Table& table : overview.tables) {
    if (!table.rows.empty()) html += page::Card(table.title, PageTable(table));
  }
  return html + "</main></body></html>\n";
}

}  // namespace report::stats
