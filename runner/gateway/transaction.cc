// SPDX-License-Identifier: Apache-2.0
#include "gateway/transaction.h"

#include "base/secret.h"
#include "gateway/async/limits.h"
#include "gateway/budget/model_api.h"
#include "gateway/credential/limits.h"
#include "gateway/http/limits.h"
#include "gateway/http/refusal.h"
#include "gateway/http/relay.h"
#include "gateway/inspect/body_treatment.h"
#include "gateway/patience.h"
#include "gateway/token_grant.h"

namespace gateway {
namespace {

// Records whose process is left to the connection's owner.
[[nodiscard]] bool RecordOwned(Services& services, const caller::Owner& owner,
                               record::Event& event) {
  event.binary = owner.caller.binary;
  event.pid = owner.pid;
  event.ancestors = owner.caller.ancestors;
  return services.Record(event);
}

// May be sent a second time when a kept connection turns out to be closed (RFC 9110, 9.2.2).
bool MayRepeat(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

Transaction::Transaction(Services& services, const caller::Owner& owner,
                         const RequestContext& context, Upstream& upstream, ClientRequest& client)
    : services_(services),
      owner_(owner),
      context_(context),
      upstream_(upstream),
      client_(client),
      pumped_(services.loop) {}

Task<void> Transaction::Run() {
  // A server whose answer is no longer awaited is told so.
  client_.WhenGone([this] {
    gone_ = true;
    if (server_) server_->Abort();
  });
  co_await JudgeAndSend();
  context_.lease.EndSpared();
  client_.WhenGone(nullptr);
}

Task<void> Transaction::JudgeAndSend() {
  std::optional<codec::BodyFraming> framed;
  if (client_.is_http2()) framed = client_.framing();
  verdict_ = JudgeRequest(context_, client_.head(), framed);
  if (verdict_.grant >= 0) co_await FetchToken(framed);
  if (verdict_.kind != RequestVerdict::kPass) {
    co_await Refuse(std::move(verdict_));
    co_return;
  }
  framing_ = client_.framing();
  if (context_.forward) client_.CloseAfter();
  bool has_body = framing_.kind != codec::BodyFraming::kNone;
  if (services_.hosted != nullptr) hosted_ = services_.hosted->Find(context_, verdict_, has_body);
  treatment_ = TreatBody(services_.guard, context_, verdict_, has_body, ReadsBody(hosted_));
  if (verdict_.websocket) {
    upgrade_.emplace(services_.loop, services_.large_messages, context_, verdict_, client_.head(),
                     [this](record::Event event) { return RecordOwned(services_, owner_, event); });
    if (!treatment_.refusal) treatment_.refusal = upgrade_->Prepare(verdict_.request.fields);
  }
  if (treatment_.refusal.has_value()) {
    co_await RefuseOutgoing(std::move(*treatment_.refusal));
    co_return;
  }
  // Held, so that it can be sent again with another token: RenewToken().
  const bool held = framing_.kind == codec::BodyFraming::kLength &&
                    framing_.length <= kRepeatedBodyBytesMax && treatment_.filters.empty() &&
                    treatment_.whole_bytes_max == 0 &&
                    context_.credentials.GrantIn(verdict_.request.fields) >= 0;
  if (held) treatment_.whole_bytes_max = kRepeatedBodyBytesMax;
  if (treatment_.whole_bytes_max > 0 || !treatment_.steps.empty() || hosted_) {
    bool passes = co_await TakeSteps();
    if (!passes) co_return;
  }
  OutgoingRefusal refusal;
  if (!Admitted(refusal)) {
    co_await RefuseOutgoing(std::move(refusal));
  } else if (Record(verdict_.event)) {
    WatchSent();
    if (!whole_) WatchUntrusted();
    co_await Converse();
  }
}

bool Transaction::Record(record::Event& event) {
  bool recorded = RecordOwned(services_, owner_, event);
  if (!recorded) client_.Abort();
  return recorded;
}

Task<void> Transaction::SendRefusal(Refusal refusal) {
  client_.CloseAfter();
  codec::BodyFraming framing{codec::BodyFraming::kLength, refusal.body.size()};
  Status sent = co_await client_.SendHead(refusal.status, StatusText(refusal.status),
                                          refusal.fields, framing);
  if (sent.ok()) sent = co_await client_.answer().Write(refusal.body);
  if (sent.ok()) sent = co_await client_.answer().Finish({});
  if (!sent.ok()) client_.Abort();
}

Task<void> Transaction::Refuse(RequestVerdict verdict) {
  if (!Record(verdict.event)) co_return;
  if (answering_ || !verdict.refusal.has_value()) {
    client_.Abort();
    co_return;
  }
  co_await SendRefusal(std::move(*verdict.refusal));
}

// Allowed as far as its head tells, and refused for its body or by a budget.
Task<void> Transaction::RefuseOutgoing(OutgoingRefusal refusal) {
  co_await Refuse(RefuseAllowed(verdict_, refusal));
}

// The request was allowed and recorded as such; this says that it led nowhere.
Task<void> Transaction::Fail(const Error& error) {
  std::string why = error.what;
  record::Event event;
  event.outcome = record::Event::Outcome::kFailed;
  event.host = context_.authority.host;
  event.port = context_.authority.port;
  event.policy = verdict_.event.policy;
  event.engine = record::Engine::kUpstream;
  event.reason = why;
  event.message = "upstream failed: " + why;
  if (server_) server_->Abort();
  if (!Record(event)) co_return;
  std::string detail = RenderAuthority(context_.authority, 0) + ": " + why;
  if (answering_) {
    client_.Abort();
  } else {
    // The server was reached, even if its answer is malformed.
    const char* name = error.code == Code::kInvalid ? "malformed_response" : "upstream_unreachable";
    co_await SendRefusal(NewRefusal(502, name, detail));
  }
}

bool Transaction::Admitted(OutgoingRefusal& refusal) {
  if (services_.guard == nullptr) return true;
  RequestGuard::Admission admission = services_.guard->Admit(context_.authority, verdict_.request);
  observer_ = std::move(admission.observer);
  if (whole_ && framing_.kind != codec::BodyFraming::kNone) {
    framing_ = {codec::BodyFraming::kLength, verdict_.request.body.size()};
  }
  if (!admission.refusal.has_value()) return true;
  refusal = std::move(*admission.refusal);
  return false;
}

// The request is as it will be sent, except for a body that streams.
void Transaction::WatchSent() {
  if (services_.sent == nullptr) return;
  sent_to_ = services_.sent->Addressed(context_.authority, verdict_.request.method, verdict_.path);
  services_.sent->LookAtRequest(sent_to_, verdict_.request, &client_.head().fields);
  if (!whole_) treatment_.filters.push_back(services_.sent->NewFilter(sent_to_));
}

// The body is as the client sent it, if it was read whole.
void Transaction::WatchUntrusted() {
  if (services_.ratchet == nullptr || !services_.ratchet->watches()) return;
  services_.ratchet->LookAtRequest(context_.authority, verdict_.event.path, verdict_.request);
  std::unique_ptr<StreamFilter> filter;
  if (!whole_) filter = services_.ratchet->NewFilter(context_.authority, verdict_.event.path);
  if (filter) treatment_.filters.push_back(std::move(filter));
}

// An answer, whatever it says, is a stranger's text.
void Transaction::NoteAnswer() {
  if (services_.ratchet == nullptr) return;
  services_.ratchet->NoteAnswer(context_.authority, verdict_.event, context_.lease);
}

// The request wants an access token that is not there, or not any more.
Task<void> Transaction::FetchToken(std::optional<codec::BodyFraming> framed) {
  ENSURE(services_.grants != nullptr);
  Status fetched = co_await services_.grants->Ensure(services_, verdict_.grant);
  if (fetched.ok()) {
    verdict_ = JudgeRequest(context_, client_.head(), framed);
    co_return;
  }
  std::string why = fetched.error().what;
  verdict_.event.reason = why;
  verdict_.refusal = NewRefusal(502, "token_grant_failed", why);
}

// Returns false if it was answered already.
Task<bool> Transaction::TakeSteps() {
  if (treatment_.whole_bytes_max > 0) {
    bool read = co_await ReadWholeBody();
    if (!read) co_return false;
    whole_ = true;
    WatchUntrusted();  // Before it is judged: this may be the request that closes.
  }
  if (verdict_.judged_body_bytes_max > 0) {
    std::optional<RequestVerdict> refused =
        JudgeWholeBody(context_, client_.head(), framing_, verdict_.request.body, verdict_);
    if (refused.has_value()) {
      co_await Refuse(std::move(*refused));
      co_return false;
    }
  }
  if (hosted_) {
    std::optional<RequestVerdict> refused = JudgeHosted(context_, *hosted_, verdict_);
    if (refused.has_value()) {
      co_await Refuse(std::move(*refused));
      co_return false;
    }
  }
  bool had_body = whole_ && framing_.kind != codec::BodyFraming::kNone;
  for (const std::unique_ptr<WholeBodyStep>& step : treatment_.steps) {
    std::optional<OutgoingRefusal> refusal = step->Apply(verdict_.request);
    if (!refusal.has_value()) continue;
    co_await RefuseOutgoing(std::move(*refusal));
    co_return false;
  }
  if (had_body) framing_ = {codec::BodyFraming::kLength, verdict_.request.body.size()};
  co_return true;
}

Task<bool> Transaction::ReadWholeBody() {
  if (framing_.kind == codec::BodyFraming::kNone) co_return true;
  bool too_long = framing_.length > treatment_.whole_bytes_max;
  if (!too_long && verdict_.expects_continue) {
    verdict_.expects_continue = false;
    Status sent = co_await client_.SendInterim(100, {});
    if (!sent.ok()) co_return false;
  }
  while (!too_long) {
    Result<BodyReader::Piece> piece = co_await client_.body().Read(IdleDeadline(kBodyIdleTimeout));
    if (!piece.ok()) {
      bool malformed = piece.error().code == Code::kInvalid;
      if (malformed) co_await Refuse(JudgeMalformed(context_, piece.error().what));
      if (!malformed) client_.Abort();  // It hung up.
      co_return false;
    }
    std::string_view bytes = piece.value().bytes;
    too_long = verdict_.request.body.size() + bytes.size() > treatment_.whole_bytes_max;
    if (!too_long) verdict_.request.body.append(bytes);
    if (piece.value().end) break;
  }
  if (too_long && verdict_.judged_body_bytes_max > 0) {
    std::optional<RequestVerdict> refused =
        JudgeWholeBody(context_, client_.head(), framing_, std::nullopt, verdict_);
    if (!refused.has_value()) refused = RefuseAllowed(verdict_, treatment_.too_long);
    co_await Refuse(std::move(*refused));
  } else if (too_long) {
    co_await RefuseOutgoing(std::move(treatment_.too_long));
  }
  co_return !too_long;
}

// --- The request on its way --------------------------------------------------------------------

// The head; a body is pumped behind it.
Task<Status> Transaction::OpenAndSend(bool fresh) {
  server_.reset();
  Result<std::unique_ptr<ServerRequest>> opened =
      co_await upstream_.Open({context_.scheme == "https", fresh});
  if (!opened.ok()) co_return std::move(opened).error();
  server_ = std::move(opened).value();
  if (gone_) co_return Error{Code::kIo, "the client disconnected"};
  Status sent = co_await server_->SendHead(verdict_.request.method, verdict_.request.target,
                                           verdict_.request.fields, framing_);
  const bool has_body = framing_.kind != codec::BodyFraming::kNone;
  if (sent.ok() && !has_body) sent = co_await server_->body().Finish({});
  co_return sent;
}

Task<void> Transaction::Converse() {
  const bool pump = framing_.kind != codec::BodyFraming::kNone;
  for (const std::unique_ptr<StreamFilter>& filter : treatment_.filters) {
    if (pump && !whole_ && !filter->keeps_length()) framing_ = {codec::BodyFraming::kChunked, 0};
  }
  Result<codec::ResponseHead> head = Error{Code::kIo, ""};
  bool renewed = false;  // The token was, after a 401.
  for (bool fresh = false;; fresh = true) {
    Status sent = co_await OpenAndSend(fresh);
    sent_ = sent_ || sent.ok();
    if (!sent.ok()) head = std::move(sent).error();
    if (sent.ok() && pump) {
      if (verdict_.expects_continue) (void)co_await client_.SendInterim(100, {});
      services_.loop.Spawn(PumpBody());
    }
    if (sent.ok()) head = co_await ReadAnswer();
    bool again = !head.ok() && !fresh && !pump && server_ && server_->may_repeat() &&
                 MayRepeat(verdict_.request.method);
    if (again) continue;
    const bool refused = head.ok() && head.value().status == 401 && (whole_ || !pump);
    if (!refused || renewed) break;
    renewed = co_await RenewToken();
    if (!renewed) break;
    if (pump) co_await EndPump();
    pumped_.Clear();
    server_->Abort();
  }
  if (head.ok() && head.value().status == 101) {
    co_await SwitchProtocols(head.value());
    co_return;
  }
  if (head.ok()) (void)co_await SendAnswer(std::move(head).value());
  if (pump && server_) co_await EndPump();
  // The server has the request, and may have worked on it, or still do.
  if (!head.ok() && sent_ && observer_) observer_->OnEnd(false);
  if (moved_ == Moved::kRefused) {
    co_await RefuseOutgoing(std::move(body_refusal_));
    co_return;
  }
  if (head.ok()) co_return;
  if (moved_ == Moved::kMalformed) {
    co_await Refuse(JudgeMalformed(context_, why_));
  } else if (moved_ == Moved::kCut) {
    client_.Abort();
  } else {
    co_await Fail(head.error());
  }
}

// A server has refused a token that the gateway fetched: it may have been revoked, or a clock
// differs. Returns true if the request has another one now.
Task<bool> Transaction::RenewToken() {
  const int grant = context_.credentials.GrantIn(verdict_.request.fields);
  if (grant < 0) co_return false;
  const SecretString old(std::string(context_.credentials.TokenOf(grant)));
  Status replaced = co_await services_.grants->Replace(services_, grant, old);
  const std::string_view now = context_.credentials.TokenOf(grant);
  if (!replaced.ok() || now == old) co_return false;
  for (codec::HttpField& field : verdict_.request.fields) {
    const size_t at = field.value.find(old);
    if (at != std::string::npos) field.value.replace(at, old.size(), now);
  }
  co_return true;
}

Task<void> Transaction::PumpBody() {
  if (whole_) {
    moved_ = co_await MoveWhole();
  } else {
    moved_ = co_await MoveBody();
  }
  // Half a request must not look like a whole one. A server that takes no more may still answer.
  if (moved_ != Moved::kWhole && moved_ != Moved::kSinkFailed) server_->Abort();
  pumped_.Set();
}

// Returns the client's trailers that may stand behind the body.
codec::HttpFields Transaction::TrailersOf(const BodyReader& body) const {
  codec::HttpFields trailers = body.trailers();
  const bool signing =
      verdict_.endpoint != nullptr && verdict_.endpoint->signing != policy::Signing::kNone;
  context_.credentials.RemoveFromTrailers({context_.authority.host, context_.authority.port,
                                           verdict_.path, context_.confidential, signing},
                                          &trailers);
  return trailers;
}

// Moves the body that was read whole. An answer may come meanwhile.
Task<Transaction::Moved> Transaction::MoveWhole() {
  if (observer_) observer_->OnSent(verdict_.request.body.size());
  Status written = co_await server_->body().Write(verdict_.request.body);
  if (written.ok()) written = co_await server_->body().Finish({});
  co_return written.ok() ? Moved::kWhole : Moved::kSinkFailed;
}

Task<Transaction::Moved> Transaction::MoveBody() {
  BodyReader& from = client_.body();
  BodyWriter& to = server_->body();
  milliseconds idle = MayFallSilent(verdict_.request.fields) ? milliseconds{0} : kBodyIdleTimeout;
  std::string filtered;
  std::string next;
  for (;;) {
    Result<BodyReader::Piece> piece = co_await from.Read(IdleDeadline(idle));
    if (!piece.ok()) {
      why_ = piece.error().what;
      co_return piece.error().code == Code::kInvalid ? Moved::kMalformed : Moved::kCut;
    }
    // Narrowed meanwhile by another request of a connection that is spared.
    if (context_.lease.replaced()) co_return Moved::kCut;
    std::string_view bytes = piece.value().bytes;
    for (const std::unique_ptr<StreamFilter>& filter : treatment_.filters) {
      next.clear();
      std::optional<OutgoingRefusal> refusal = filter->Filter(bytes, piece.value().end, next);
      if (refusal.has_value()) {
        body_refusal_ = std::move(*refusal);
        co_return Moved::kRefused;
      }
      filtered.swap(next);
      bytes = filtered;
    }
    if (observer_) observer_->OnSent(bytes.size());
    Status written = co_await to.Write(bytes);
    bool end = piece.value().end;
    const codec::HttpFields trailers = end ? TrailersOf(from) : codec::HttpFields();
    if (end && services_.sent != nullptr) services_.sent->LookAtFields(sent_to_, trailers);
    if (written.ok() && end) written = co_await to.Finish(trailers);
    if (written.ok() && !end && !from.ready()) written = co_await to.Flush();
    if (!written.ok()) {
      why_ = written.error().what;  // kBug: not the length that the head said.
      co_return written.error().code == Code::kBug ? Moved::kMalformed : Moved::kSinkFailed;
    }
    if (end) co_return Moved::kWhole;
  }
}

// Ends a pump that may still run. A server may answer early (413), or not at all; the rest of the
// body is not worth sending then.
Task<void> Transaction::EndPump() {
  if (pumped_.is_set()) co_return;
  server_->Abort();
  bool ended = co_await pumped_.Within(Deadline::After(kLingerTimeout));
  if (!ended) client_.body().Cancel();
  co_await pumped_.Within(Deadline::Never());
}

// --- The handler -------------------------------------------------------------------------------

Task<void> TransactionHandler::Handle(ClientRequest& request) {
  Transaction transaction(services_, owner_, context_, upstream_, request);
  co_await transaction.Run();
}

void TransactionHandler::OnMalformed(std::string_view why) {
  // A record that cannot be written has ended the loop.
  RequestVerdict verdict = JudgeMalformed(context_, why);
  (void)RecordOwned(services_, owner_, verdict.event);
}

}  // namespace gateway
