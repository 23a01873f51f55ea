// SPDX-License-Identifier: Apache-2.0
// Applies the policy, the middlewares and the credentials to the messages of one WebSocket.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/credential/credentials.h"
#include "gateway/inspect/websocket_inspector.h"
#include "policy/decide/compiled.h"
#include "record/event.h"

namespace gateway {

// The treatment of the messages of a WebSocket.
struct MessageTreatment {
  bool judged = false;    // The policy's rules are asked about each; binary ones are not read.
  bool redacts = false;   // Keys are written over (middleware_redact.h).
  bool rewrites = false;  // Placeholders become credentials; binary messages are refused.
  // True if they are read at all. Otherwise the WebSocket is a raw relay.
  bool any() const { return judged || redacts || rewrites; }
};
// Returns the treatment of messages for a WebSocket that is opened at `target`.
MessageTreatment FindMessageTreatment(const policy::Route& route,
                                      const std::vector<policy::Middleware>& middlewares,
                                      const CredentialTarget& target);

// The WebSocket whose messages are judged. Everything is borrowed.
struct MessageQuestion {
  const policy::Route& route;
  const policy::Caller& caller;
  const std::string& policy_file;
  const Credentials& credentials;
  CredentialTarget target;
  std::string_view query = {};  // Raw, of the request that opened it.
  MessageTreatment treatment = {};
};

class PolicyMessageJudge final : public MessageJudge {
 public:
  // `record` takes each decision before it takes effect; if it returns false, nothing passes.
  // `opened` is the record of the request that opened the WebSocket.
  PolicyMessageJudge(const MessageQuestion& question, record::Event opened,
                     std::function<bool(record::Event)> record);

  std::optional<WebSocketEnd> JudgeText(std::string& text) override;
  std::optional<WebSocketEnd> JudgeBinary() override;

 private:
  std::optional<WebSocketEnd> Conclude(const policy::JudgedBody& decision,
                                       codec::WebSocketClose close);
  std::optional<WebSocketEnd> Refuse(record::Engine engine, std::string reason);
  bool Record(record::Event event);

  MessageQuestion question_;
  record::Event base_;
  std::function<bool(record::Event)> record_;
};

}  // namespace gateway
