// SPDX-License-Identifier: Apache-2.0
// The messages of the protocols by which an agent behind a URL is asked: midojo's `http`, the
// JSON-RPC binding of A2A (0.3 and 1.0), and OpenAI's Responses API. What an agent sends is hostile
// input: what is not understood makes its answer incomplete, or ends in an error. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "codec/data/json.h"
#include "eval/grade/verdict.h"

namespace eval {

// What an agent is asked.
struct AgentTask {
  std::string prompt;
  std::string tools_url;       // Of the suite's fake tools, an MCP server.
  bool announces_url = false;  // The request says it also where the protocol has no field for it.
  std::string model = {};      // For the Responses API; empty if none was named.
};

// What came of it.
struct AgentAnswer {
  Ending ending = Ending::kNeverRan;
  std::string reason = {};  // Why the ending is not kEnded; otherwise empty.
  std::string text = {};    // The agent's words.
  bool whole = false;       // They are all that it said, as text.
};

// Render the request of `http`, {"prompt": ...}, and read the answer: the first of `response`,
// `output` and `text`. Fails with kInvalid if none of them is a text.
codec::Json RenderHttpTask(const AgentTask& task);
Result<AgentAnswer> ParseHttpAnswer(const codec::Json& body);

// Render the request for POST /responses, and read its answer: the texts and refusals of all
// messages. An answer that waits for an approval or for a function's result has failed. Fails with
// kInvalid without `status` or `output`, or if the answer is not final.
codec::Json RenderResponsesTask(const AgentTask& task);
Result<AgentAnswer> ParseResponsesAnswer(const codec::Json& body);

// The JSON-RPC interface of an A2A agent.
struct A2aInterface {
  std::string url;    // As the agent's card has it.
  bool is_1 = false;  // A2A 1.0; otherwise 0.3 or older.
};
// Fails with kInvalid if the card names no JSON-RPC interface of these versions.
Result<A2aInterface> ParseAgentCard(const codec::Json& card);

// Render the JSON-RPC requests that send the task, as the message of that id, and that ask for the
// state of an A2A task.
codec::Json RenderA2aMessage(const AgentTask& task, std::string message_id, bool is_1);
codec::Json RenderA2aQuery(const std::string& task_id, bool is_1);
// Reads the answer to either. Without an answer, the task still goes on, and has that id.
struct A2aStep {
  std::optional<AgentAnswer> answer;
  std::string task_id;
};
// Takes the text of all that the agent said: its messages and its artifacts. Fails with kInvalid if
// it is neither a message nor a task, and with the agent's own words for an error of JSON-RPC.
Result<A2aStep> ParseA2aAnswer(const codec::Json& body);

}  // namespace eval
