// SPDX-License-Identifier: Apache-2.0
// The answer of a transaction on its way back.
#include "gateway/http/limits.h"
#include "gateway/limits.h"
#include "gateway/patience.h"
#include "gateway/transaction.h"

namespace gateway {

Task<Result<codec::ResponseHead>> Transaction::ReadAnswer() {
  for (int interim = 0; interim < kInterimAnswersMax; ++interim) {
    Result<codec::ResponseHead> head =
        co_await server_->ReadHead(Deadline::After(kResponseHeadTimeout));
    if (!head.ok()) co_return head;
    int status = head.value().status;
    if (status == 101 && !verdict_.websocket) {
      co_return Error{Code::kInvalid, "the server switched protocols without being asked to"};
    }
    if (status >= 200 || status == 101) co_return head;
    if (status == 100) continue;  // It was said by us already.
    NoteAnswer();
    Status passed =
        co_await client_.SendInterim(status, codec::EndToEndFields(head.value().fields));
    if (!passed.ok()) co_return std::move(passed).error();
  }
  co_return Error{Code::kInvalid, "too many interim responses"};
}

// Returns false if it was cut off.
Task<bool> Transaction::SendAnswer(codec::ResponseHead head) {
  codec::BodyFraming framing = server_->framing();
  if (observer_) observer_->OnHead(head);
  std::optional<codec::HttpField> length;
  if (framing.kind == codec::BodyFraming::kNone && head.status != 204) {
    // The length is that of a body which HEAD or a 304 leaves out.
    const codec::HttpField* found = codec::FindField(head.fields, "content-length");
    if (found != nullptr) length = *found;
  }
  codec::KeepEndToEnd(head.fields);
  if (length.has_value()) head.fields.push_back(std::move(*length));
  answering_ = true;
  NoteAnswer();
  Status sent = co_await client_.SendHead(head.status, head.reason, head.fields, framing);
  bool complete = false;
  if (sent.ok()) complete = co_await MoveAnswer(IdleOf(head, framing));
  if (observer_) observer_->OnEnd(complete);
  if (!complete) {
    // Cut off, not ended: the client must see that something is missing.
    server_->Abort();
    client_.Abort();
  }
  co_return complete;
}

Task<bool> Transaction::MoveAnswer(milliseconds idle) {
  BodyReader& from = server_->answer();
  BodyWriter& to = client_.answer();
  bool unframed = server_->framing().kind == codec::BodyFraming::kUntilClose;
  for (;;) {
    if (!from.ready()) {
      Status flushed = co_await to.Flush();
      if (!flushed.ok()) co_return false;
    }
    Result<BodyReader::Piece> piece = co_await from.Read(IdleDeadline(idle));
    // A body without framing may simply be complete.
    bool over = !piece.ok() && unframed && piece.error().code == Code::kTemporary;
    if (!piece.ok() && !over) {
      (void)co_await to.Flush();  // The part that there is of it.
      co_return false;
    }
    bool end = over || piece.value().end;
    if (!over) {
      if (observer_) observer_->OnBody(piece.value().bytes);
      Status written = co_await to.Write(piece.value().bytes);
      if (!written.ok()) co_return false;
    }
    if (!end) continue;
    Status finished = co_await to.Finish(from.trailers());
    co_return finished.ok();
  }
}

Task<void> Transaction::SwitchProtocols(const codec::ResponseHead& head) {
  Result<codec::HttpFields> fields = upgrade_->Accept(head);
  if (!fields.ok()) {
    co_await Fail(fields.error());
    co_return;
  }
  NoteAnswer();
  // NoteAnswer() spares this connection until the end of its answer. A switched connection has no
  // such end, so it is cut here, and the client has to ask anew.
  if (!context_.lease.replaced()) {
    Status sent = co_await client_.SendHead(head.status, head.reason, fields.value(),
                                            {codec::BodyFraming::kUntilClose, 0});
    if (sent.ok()) sent = co_await client_.answer().Flush();
    if (sent.ok()) {
      if (services_.sent != nullptr) services_.sent->NotePassage(context_.authority);
      co_await upgrade_->Carry({client_.body(), client_.answer()},
                               {server_->answer(), server_->body()});
    }
  }
  server_->Abort();
  client_.Abort();
}

}  // namespace gateway
