// SPDX-License-Identifier: Apache-2.0
// Tables of figures, and their rendering for people and programs. Pure. Texts in cells may come
// from strangers: each rendering neutralises them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace report::stats {

enum class Unit { kText, kUrl, kCount, kMilliseconds, kUsd, kShare };

struct Column {
  std::string key;    // The member's name in JSON.
  std::string title;  // For people.
  Unit unit = Unit::kText;
};

struct Cell {
  std::string text = {};              // Of kText and kUrl.
  std::optional<double> number = {};  // Of all others; nullopt if unknown. kShare: 0 to 1.
};

struct Table {
  std::string key;  // The list's name in JSON.
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};  // Each has a cell for each column.
  size_t more = 0;                           // Rows that were left out.
};

struct Overview {
  int64_t runs = 0;
  int64_t not_read = 0;  // Directories that hold no readable report.
  int64_t first_ms = 0;  // Of the earliest and latest run's start, since 1970; 0 without runs.
  int64_t last_ms = 0;
  double cost_usd = 0;       // What is known of it.
  int64_t cost_unknown = 0;  // Runs whose cost is not known, or only in part.
  std::vector<Table> tables;
};

// Renders aligned columns for a terminal or a log.
std::string RenderText(const Overview& overview);
// Renders Markdown, for a step summary or a comment.
std::string RenderMarkdown(const Overview& overview);
// Renders one object: the members of Overview, and under the key of each table a list of objects.
std::string RenderJson(const Overview& overview);
// Renders one self-contained page without scripts.
std::string RenderPage(const Overview& overview);

}  // namespace report::stats
