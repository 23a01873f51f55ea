// SPDX-License-Identifier: Apache-2.0
// The fake tools of a suite as a server of the Model Context Protocol (streamable HTTP, one JSON
// answer per request). It runs outside the sandbox, on loopback; the agent reaches it through the
// gateway, and nothing but calls of tools changes what it holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"
#include "eval/suite/suite.h"

namespace eval {

// Returns about the bytes of memory that a value takes: 100 each, and its texts.
size_t WeightOf(const codec::Json& value);

// The state, and what tools do to it. Not thread-safe.
class ToolState {
 public:
  // The tools together write less than this weight into the state (WeightOf).
  static constexpr size_t kWrittenMax = size_t{32} << 20;

  ToolState(const std::vector<Tool>& tools, codec::Json state)
      : tools_(tools), state_(std::move(state)) {}

  // Returns the answer to one JSON-RPC message; nullopt for a notification. `call` is filled in if
  // it was a call of a tool: {"tool", "arguments", "result", "failed"}.
  std::optional<codec::Json> Answer(const codec::Json& message, std::optional<codec::Json>* call);
  const codec::Json& state() const { return state_; }

 private:
  codec::Json List() const;
  codec::Json Call(const codec::Json& params, std::optional<codec::Json>* call);
  Result<std::string> CarryOut(const Tool& tool, const codec::Json& arguments);

  const std::vector<Tool>& tools_;
  codec::Json state_;
  size_t room_ = kWrittenMax;
};

class ToolServer {
 public:
  // Listens on a free port of 127.0.0.1. Each call is written to `directory`/tools.jsonl before it
  // is answered. `tools` must outlive the server.
  static Result<ToolServer> Start(const std::vector<Tool>& tools, codec::Json state,
                                  const std::string& directory);
  ToolServer(ToolServer&&) noexcept;
  ToolServer& operator=(ToolServer&&) = delete;
  ~ToolServer();

  int port() const;
  // Ends it, and writes the state to state.json.
  Status Stop();

 private:
  struct Body;
  explicit ToolServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// Returns the URL at which the agent finds the server.
std::string ToolsUrl(int port);
// Returns `policy` (what a run allows by itself, if empty) with an entry for it. Fails with
// kInvalid if it is not YAML.
Result<std::string> WithTools(const std::string& policy, int port);

}  // namespace eval
