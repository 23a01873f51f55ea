// SPDX-License-Identifier: Apache-2.0
// The list of places where agents run, by the value of `--backend`: a row for each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "run/request.h"
#include "session/client.h"
#include "session/keeper.h"

namespace backend {

// A sandbox that lasts answers on its socket (session/protocol.h), whichever backend has it, and
// refuses there what it cannot do. Two things are left to the row.
struct Row {
  run::Backend runs;
  // Starts a sandbox that lives until it is deleted or its time has passed. Null if there are none.
  Result<session::Created> (*create)(const session::CreateRequest& request) = nullptr;
  // Runs a script in one, as session::Exec() does.
  Result<session::CommandResult> (*exec)(const session::Place& place, const std::string& name,
                                         std::string_view script,
                                         const session::ExecRequest& request,
                                         const session::Sink& sink) = nullptr;
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
