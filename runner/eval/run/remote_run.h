// SPDX-License-Identifier: Apache-2.0
// How an evaluation asks an agent that runs elsewhere, behind a URL: the options of the command
// line, and the run of one cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "eval/remote/remote_agent.h"
#include "eval/run/cell.h"
#include "eval/run/tool_server.h"
#include "eval/suite/suite.h"

namespace eval {

// The options, as given; empty if they were not.
struct RemoteOptions {
  std::string url;
  std::string protocol;
  std::vector<std::string> headers = {};  // NAME=VARIABLE.
  bool plain_http = false;
  std::string tools_listen = {};  // ADDRESS[:PORT][/PATH].
  std::string tools_url = {};
  uint32_t jobs = 1;  // Cells at the same time.
};

struct RemoteRun {
  RemoteAgent agent;
  // Where the suite's tools are served. Of cells at the same time, the one with the number N, from
  // 0, takes the port behind it by N. Without a path, each cell makes its own.
  ToolAddress tools;
  std::string tools_url;  // What the agent finds before that path; if empty, from the address.
};

// Parses the options. The values of headers, the proxy, the CA file, the model and the time limit
// are the caller's to add. Fails with kUsage: an address or a protocol that does not exist, plain
// HTTP to another machine that was not allowed, tools that the agent could not find.
Result<RemoteRun> ParseRemoteRun(const RemoteOptions& options);

// Runs a cell: serves its tools, asks the agent, and leaves the record of both in `directory`.
// `number` is that of the cell among those at the same time. What the agent does wrong is in the
// record; fails only if the tools cannot be served or something cannot be written.
Status RunRemoteCell(const Suite& suite, const Cell& cell, const RemoteRun& run,
                     const std::string& model, const std::string& directory, uint32_t number);

}  // namespace eval
