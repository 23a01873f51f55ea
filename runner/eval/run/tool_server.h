// SPDX-License-Identifier: Apache-2.0
// The fake tools of a suite as a server of the Model Context Protocol (streamable HTTP, one JSON
// answer per request). It runs outside the sandbox, on loopback; the agent reaches it through the
// gateway, and nothing but calls of tools changes what it holds. For an agent that runs elsewhere,
// or in a sandbox of OpenShell's, it listens where that can reach it, and answers at one path
// alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/data/secret_mask.h"
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

// Where a server listens.
struct ToolAddress {
  std::string ip = "127.0.0.1";  // IPv4.
  uint16_t port = 0;             // If 0, a free one.
  std::string path = {};         // The only one that is answered, a secret; if empty, all are.
};

class ToolServer {
 public:
  // Listens. Each call is written to `directory`/tools.jsonl before it is answered. `mask` (may be
  // null) is applied to all that is written. `tools` and `mask` must outlive the server. Fails with
  // kIo if the address cannot be had.
  static Result<ToolServer> Start(const std::vector<Tool>& tools, codec::Json state,
                                  const std::string& directory, const ToolAddress& address = {},
                                  const codec::SecretMask* mask = nullptr);
  ToolServer(ToolServer&&) noexcept;
  ToolServer& operator=(ToolServer&&) = delete;
  ~ToolServer();

  int port() const;
  // Returns whether a request of its protocol came to its path. Valid after Stop().
  bool asked() const;
  // Ends it, and writes the state to state.json.
  Status Stop();

 private:
  struct Body;
  explicit ToolServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// Returns the URL at which an agent in a sandbox finds the server.
std::string ToolsUrl(const ToolAddress& address);
// Returns `policy` (what a run allows by itself, if empty) with an entry for it. Fails with
// kInvalid if it is not YAML.
Result<std::string> WithTools(const std::string& policy, int port);

}  // namespace eval
