// SPDX-License-Identifier: Apache-2.0
// The list of places where agents run, by the value of `--backend`: a row for each.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "run/request.h"

namespace backend {

struct Row {
  run::Backend runs;
  // Returns the interface to the sandboxes that last there; null if there are none.
  std::unique_ptr<Backend> (*lasting)(session::Place) = nullptr;
};

// Returns every row; the first is agentic-ci's own.
std::span<const Row> Rows();
// Returns the row called `name`, or null.
inline const Row* FindRow(std::string_view name) {
  for (const Row& row : Rows()) {
    if (row.runs.name == name) return &row;
  }
  return nullptr;
}

}  // namespace backend
