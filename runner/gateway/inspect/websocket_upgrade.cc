// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_upgrade.h"

#include <algorithm>
#include <utility>

#include "codec/wire/websocket_handshake.h"
#include "gateway/inspect/websocket_session.h"

namespace gateway {
namespace {

constexpr std::string_view kExtensions = "sec-websocket-extensions";

std::string QueryOf(std::string_view target) {
  size_t question = std::min(target.find('?'), target.size());
  return std::string(target.substr(std::min(question + 1, target.size())));
}

void DropExtensions(codec::HttpFields& fields) {
  std::erase_if(fields, [](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, kExtensions);
  });
}

void SetDeflate(codec::HttpFields& fields, bool deflate) {
  DropExtensions(fields);
  if (deflate) {
    fields.push_back({"Sec-WebSocket-Extensions", std::string(codec::kWebSocketDeflateOffer)});
  }
}

}  // namespace

WebSocketUpgrade::WebSocketUpgrade(EventLoop& loop, LargeMessages& large_messages,
                                   const RequestContext& context, const RequestVerdict& verdict,
                                   const codec::RequestHead& asked,
                                   std::function<bool(record::Event)> record)
    : loop_(loop),
      large_messages_(large_messages),
      context_(context),
      verdict_(verdict),
      asked_(asked),
      record_(std::move(record)),
      target_{context.authority.host, context.authority.port, verdict.path, context.confidential,
              false},
      treatment_(FindMessageTreatment(context.route, context.policy().middlewares, target_)),
      query_(QueryOf(asked.target)) {}

std::optional<OutgoingRefusal> WebSocketUpgrade::Prepare(codec::HttpFields& fields) {
  Status fine = codec::CheckWebSocketRequest(asked_);
  if (!fine.ok()) {
    const std::string why = "WebSocket: " + fine.error().what;
    return OutgoingRefusal{NewRefusal(400, "invalid_websocket_request", why),
                           record::Engine::kL7WebSocket, why};
  }
  if (!treatment_.any()) return std::nullopt;
  deflate_offered_ = codec::OffersWebSocketDeflate(fields);
  SetDeflate(fields, deflate_offered_);
  return std::nullopt;
}

Result<codec::HttpFields> WebSocketUpgrade::Accept(const codec::ResponseHead& head) {
  const codec::HttpField* key = codec::FindField(asked_.fields, "sec-websocket-key");
  ENSURE(key != nullptr);
  TRY(codec::CheckWebSocketResponse(head, key->value));
  codec::HttpFields fields = codec::EndToEndFields(head.fields);
  fields.push_back({"Upgrade", "websocket"});
  if (!treatment_.any()) return fields;
  deflate_ = TRY(codec::AgreesToWebSocketDeflate(head.fields, deflate_offered_));
  SetDeflate(fields, deflate_);
  return fields;
}

// Returns an event about what happens on the connection behind the request.
record::Event WebSocketUpgrade::NewRecord() const {
  record::Event event = verdict_.event;
  event.engine = record::Engine::kL7WebSocket;
  event.reason.clear();
  return event;
}

Task<void> WebSocketUpgrade::Carry(RelayEnd client, RelayEnd server) {
  if (!treatment_.any()) {
    co_await Relay(loop_, client, server);
    co_return;
  }
  const MessageQuestion question{
      context_.route, context_.caller, context_.policy_file, context_.credentials, target_,
      query_,         treatment_};
  PolicyMessageJudge judge(question, NewRecord(), record_);
  auto faulted = [this](const WebSocketEnd& end) {
    record::Event event = NewRecord();
    event.outcome = record::Event::Outcome::kDenied;
    event.reason = end.reason;
    event.message = "WebSocket closed: " + end.reason;
    // A record that cannot be written has ended the loop.
    (void)record_(std::move(event));
  };
  WebSocketSession session(loop_, deflate_, judge, large_messages_, faulted);
  session.CloseWhen([this] { return context_.lease.replaced(); });
  co_await session.Run(client, server);
}

}  // namespace gateway
