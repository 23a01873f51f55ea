// SPDX-License-Identifier: Apache-2.0
// Tables of cases: `agentic-ci policy test FILE...`. A table says what a policy must allow and
// refuse, so that a change in behaviour is noticed.
//
//   about: One repository may be read, and nothing be written.
//   policy: ../../policies/read-only-github.yml        # Or `default`, or the policy itself.
//   context: {agent: claude-code, forge: github.com}   # For the `endpoints:` form.
//   cases:
//     - request: GET https://api.github.com/repos/acme/site   # Or CONNECT host:port.
//       expect: allow                                         # allow, deny or audit.
//       binary: /usr/bin/git       # Or a list: the program, then its ancestors.
//       by: github                 # The policy's name, or a part of the reason. `malformed`
//                                  # for a malformed request, which no gateway accepts.
//       body: '{"query": "{x}"}'   # What a GraphQL, JSON-RPC or MCP request carries; with
//                                  # `request: WEBSOCKET_TEXT wss://host/path` the message.
//       fields: ["Accept: text/event-stream"]   # Of the request.
//       hint: nearest rule         # A part of what explains a refusal.
//       case, policy, cmdline, resolves, path: optional (a label; this case's own policy;
//       arguments; addresses; the canonical path).
//   accepts:                       # Policies that load: `yaml` (text or a mapping), `warning`.
//   rejects:                       # Policies that do not: `yaml`, and a part of the `error`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/load/parse.h"

namespace advise {

struct TableReport {
  std::string about;
  int cases = 0;                      // Rows that were tried.
  std::vector<std::string> failures;  // One per failed row: "file:line:col: what".
};

// Runs the table in the file `path`; a policy it names by path is relative to it. Fails with
// kNotFound for a missing file and with kInvalid for one that is not a table; a failing case is not
// an Error. `model_hosts` is for `context: {agent: ...}`.
Result<TableReport> RunPolicyTable(const std::string& path,
                                   const policy::ModelHosts& model_hosts = {});

}  // namespace advise
