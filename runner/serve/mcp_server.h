// SPDX-License-Identifier: Apache-2.0
// `agentic-ci mcp`: one sandbox as tools of the Model Context Protocol, over standard input and
// output, in its revisions up to 2025-11-25 and in 2026-07-28.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/loop.h"
#include "serve/mcp_tool.h"

namespace serve {

struct McpConfig {
  std::string sandbox;    // The sandbox to use. If empty, one is created at the first call.
  int64_t timeout_s = 0;  // The most that a command may run.
};

class McpServer final : public Loop {
 public:
  McpServer(McpConfig config, session::Place place, CreateOptions options, int in, int out);

 private:
  // A call of a tool.
  struct Call {
    std::string id;
    const Tool* tool = nullptr;
    codec::Json arguments;
    bool modern = false;         // By the revision of 2026.
    std::string progress_token;  // Rendered; empty if no progress is wanted.
    int64_t progress = 0;
  };

  void Take(const Request& request) override;
  void TakeEnd(const std::string& sandbox) override;
  void Turn() override;
  Deadline next_turn() const override;
  // Returns whether the request is by the revision of 2026, or answers it and returns nothing.
  std::optional<bool> FindEra(const Request& request);
  void Discover(const Request& request);
  void Initialize(const Request& request);
  void CallTool(const Request& request, bool modern);
  void CancelCall(const std::string& id);
  void Begin(Call call);
  void Answer(const Call& call, const Result<codec::Json>& result);
  void Reply(const std::string& id, codec::Json result, bool modern);
  Status StartSandbox();

  const McpConfig config_;
  bool initialized_ = false;
  std::string handle_;  // The sandbox that calls work in; empty if there is none.
  bool ready_ = false;
  std::optional<Error> failed_;        // Why it could not be created.
  std::vector<Call> waiting_;          // Until it is ready.
  std::map<std::string, Call> going_;  // By their ids.
  Deadline next_progress_ = Deadline::Never();
};

}  // namespace serve
