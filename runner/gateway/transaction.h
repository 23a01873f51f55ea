// SPDX-License-Identifier: Apache-2.0
// One HTTP request through the gateway, in any version: judge, inspect, record, send, return the
// response.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caller/identity.h"
#include "gateway/budget/response_observer.h"
#include "gateway/http/body_filter.h"
#include "gateway/http/message.h"
#include "gateway/inspect/hosted_judge.h"
#include "gateway/inspect/request_judge.h"
#include "gateway/inspect/sent_watch.h"
#include "gateway/inspect/websocket_upgrade.h"
#include "gateway/services.h"
#include "gateway/upstream.h"

namespace gateway {

// One request, whichever version of HTTP carries it: judged, its body looked into where the policy
// asks for that, recorded, sent, and its answer passed back.
class Transaction {
 public:
  // Everything is borrowed for the life of the transaction.
  Transaction(Services& services, const caller::Owner& owner, const RequestContext& context,
              Upstream& upstream, ClientRequest& client);

  // Answers or aborts the request.
  Task<void> Run();

 private:
  // The ways in which moving a body ends.
  enum class Moved { kWhole, kCut, kMalformed, kRefused, kSinkFailed };

  Task<void> JudgeAndSend();
  [[nodiscard]] bool Record(record::Event& event);
  Task<void> Refuse(RequestVerdict verdict);
  Task<void> RefuseOutgoing(OutgoingRefusal refusal);
  Task<void> Fail(const Error& error);
  Task<void> SendRefusal(Refusal refusal);

  Task<bool> ReadWholeBody();
  Task<void> FetchToken(std::optional<codec::BodyFraming> framed);
  Task<bool> TakeSteps();
  bool Admitted(OutgoingRefusal& refusal);
  void WatchSent();
  void WatchUntrusted();
  void NoteAnswer();
  Task<void> Converse();
  Task<Status> OpenAndSend(bool fresh);
  Task<bool> RenewToken();
  Task<void> PumpBody();
  Task<Moved> MoveWhole();
  Task<Moved> MoveBody();
  codec::HttpFields TrailersOf(const BodyReader& body) const;
  Task<void> EndPump();

  // Returns the head of the answer, interim ones passed on.
  Task<Result<codec::ResponseHead>> ReadAnswer();
  Task<bool> SendAnswer(codec::ResponseHead head);
  Task<bool> MoveAnswer(milliseconds idle);
  Task<void> SwitchProtocols(const codec::ResponseHead& head);

  Services& services_;
  const caller::Owner& owner_;
  const RequestContext& context_;
  Upstream& upstream_;
  ClientRequest& client_;

  RequestVerdict verdict_;
  BodyTreatment treatment_;
  std::optional<HostedQuestion> hosted_;  // What is judged of a request to a model.
  codec::BodyFraming framing_;            // The framing in which the body is sent.
  std::optional<WebSocketUpgrade> upgrade_;
  bool whole_ = false;  // True if the body is in verdict_.request.
  SentWatch::To sent_to_;
  std::unique_ptr<ServerRequest> server_;
  std::unique_ptr<ResponseObserver> observer_;
  bool sent_ = false;       // The server was given the request, or the head of one that streams.
  bool gone_ = false;       // The client has given up.
  bool answering_ = false;  // A head was given to the client.

  // The pump of the body, while the answer is awaited.
  Signal pumped_;
  Moved moved_ = Moved::kWhole;
  std::string why_;               // It was cut or malformed.
  OutgoingRefusal body_refusal_;  // The answer of a kRefused.
};

// Handles each request of a connection's session by a Transaction towards `upstream`.
class TransactionHandler final : public RequestHandler {
 public:
  // Everything is borrowed.
  TransactionHandler(Services& services, const caller::Owner& owner, const RequestContext& context,
                     Upstream& upstream)
      : services_(services), owner_(owner), context_(context), upstream_(upstream) {}

  Task<void> Handle(ClientRequest& request) override;
  void OnMalformed(std::string_view why) override;

 private:
  Services& services_;
  const caller::Owner& owner_;
  const RequestContext& context_;
  Upstream& upstream_;
};

}  // namespace gateway
