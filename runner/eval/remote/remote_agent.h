// SPDX-License-Identifier: Apache-2.0
// An agent under test that runs elsewhere, behind a URL: asks it for its answer to one task. TLS is
// verified, no redirect is followed, the answer and the time are bounded, and credentials are in no
// answer and no error. Everything that goes wrong is an ending with a reason, never an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "codec/data/secret_mask.h"
#include "eval/remote/agent_message.h"
#include "net/proxy.h"
#include "net/url.h"

namespace eval {

enum class AgentProtocol { kHttp, kA2a, kOpenAi };
std::string_view Render(AgentProtocol protocol);
std::optional<AgentProtocol> ParseAgentProtocol(std::string_view text);

// A header of every request to the agent.
struct AgentHeader {
  std::string name;
  std::string variable;  // The variable of this process's environment that has the value.
  Secret value;
};

struct RemoteAgent {
  AgentProtocol protocol = AgentProtocol::kHttp;
  // Where `http` is posted to; of A2A, what the path of the agent's card is appended to; of the
  // Responses API, what "/responses" is.
  net::Url url;
  std::vector<AgentHeader> headers;
  bool plain_http = false;  // Also to another machine.
  std::string ca_file;      // PEM; the system's if empty.
  net::Proxy proxy;
  int64_t timeout_s = 0;  // For one task altogether.
  codec::SecretMask mask;
};

// Parses "NAME=VARIABLE". Fails with kUsage, also for a header that frames or routes a request.
Result<AgentHeader> ParseAgentHeader(std::string_view text);

// Gives a header its value, and masks it from then on. A value of `authorization` without a scheme
// becomes "Bearer VALUE". Fails with kSetup if the value is empty or too short to be masked.
Status TakeHeaderValue(Secret value, AgentHeader* header, codec::SecretMask* mask);

// Asks the agent. It was never asked (kNeverRan) if no byte of the task left this machine. An agent
// that was asked and did not answer within the bounds is lost; its work may go on. Fails with
// kSetup if there are no certificates to trust.
Result<AgentAnswer> AskAgent(const RemoteAgent& agent, const AgentTask& task);

}  // namespace eval
