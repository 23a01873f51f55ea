// SPDX-License-Identifier: Apache-2.0
// Http2Stream of http2_session.h.
#include <algorithm>

#include "gateway/async/limits.h"
#include "gateway/http/http2_head.h"
#include "gateway/http/http2_session.h"

namespace gateway {
namespace {

Error Silent() { return {Code::kTemporary, "timed out"}; }

}  // namespace

Http2Stream::Http2Stream(Http2Session& session, int32_t id)
    : session_(session), id_(id), arrival_(session.loop_), departure_(session.loop_) {}

void Http2Stream::Break(Error error) {
  if (!broken_.has_value()) broken_ = std::move(error);
  arrival_.Set();
  departure_.Set();
  std::function<void()> call = std::exchange(when_gone_, nullptr);
  if (call && !finished_) call();
}

Task<Result<Http2Stream::Head>> Http2Stream::ReadHead(Deadline deadline) {
  while (heads_.empty()) {
    if (broken_.has_value()) co_return *broken_;
    arrival_.Clear();
    bool arrived = co_await arrival_.Within(deadline);
    if (!arrived) co_return Silent();
  }
  Head head = std::move(heads_.front());
  heads_.pop_front();
  co_return head;
}

bool Http2Stream::ready() const {
  return given_ < reading_.size() || !arrived_.empty() || ended_ || broken_.has_value();
}

Task<Result<BodyReader::Piece>> Http2Stream::Read(Deadline deadline) {
  if (unconsumed_ > 0) {
    session_.engine_.Consume(id_, std::exchange(unconsumed_, 0));
    session_.work_.Set();
  }
  while (!ready() && !cancelled_) {
    arrival_.Clear();
    bool arrived = co_await arrival_.Within(deadline);
    if (!arrived) co_return Silent();
  }
  if (cancelled_) co_return Error{Code::kIo, "the reader is gone"};
  if (given_ == reading_.size()) {
    given_ = 0;
    reading_.clear();
    reading_.swap(arrived_);
  }
  // The bytes that arrived before the stream broke are not a whole body either.
  if (broken_.has_value() && !ended_) co_return *broken_;
  Piece piece;
  piece.bytes = std::string_view(reading_).substr(given_, kStreamBufferBytes);
  given_ += piece.bytes.size();
  unconsumed_ = piece.bytes.size();
  piece.end = ended_ && given_ == reading_.size() && arrived_.empty();
  co_return piece;
}

void Http2Stream::Cancel() {
  cancelled_ = true;
  arrival_.Set();
}

Task<Status> Http2Stream::Write(std::string_view bytes) {
  if (bytes.empty()) co_return Ok();
  if (!broken_.has_value() && !finishing_) {
    sending_ = bytes;
    session_.engine_.Resume(id_);
    session_.work_.Set();
  }
  while (!sending_.empty() && !broken_.has_value()) {
    departure_.Clear();
    bool left = co_await departure_.Within(Deadline::After(kWriteTimeout));
    if (left) continue;
    sending_ = {};
    co_return Silent();
  }
  sending_ = {};
  if (broken_.has_value()) co_return *broken_;
  if (finished_) co_return Error{Code::kIo, "the stream has ended"};
  co_return Ok();
}

// The engine is woken by whatever gives it something, and gathers what it finds.
Task<Status> Http2Stream::Flush() { co_return Ok(); }

Task<Status> Http2Stream::Finish(const codec::HttpFields& trailers) {
  if (finished_) co_return Ok();
  last_fields_ = RenderHttp2Trailers(trailers);
  finishing_ = true;
  session_.engine_.Resume(id_);
  session_.work_.Set();
  while (!finished_ && !broken_.has_value()) {
    departure_.Clear();
    bool left = co_await departure_.Within(Deadline::After(kWriteTimeout));
    if (!left) co_return Silent();
  }
  if (!finished_) co_return *broken_;
  co_return Ok();
}

Status Http2Stream::SendResponse(const codec::HttpFields& fields, bool end) {
  if (broken_.has_value()) return *broken_;
  TRY(session_.engine_.SubmitResponse(id_, fields, end));
  answered_ = true;
  finished_ = end;
  session_.work_.Set();
  return Ok();
}

Status Http2Stream::AnswerInterim(const codec::HttpFields& fields) {
  if (broken_.has_value()) return *broken_;
  TRY(session_.engine_.SubmitInterim(id_, fields));
  session_.work_.Set();
  return Ok();
}

void Http2Stream::Reset(Http2Code code) {
  when_gone_ = nullptr;
  if (!closed_) session_.engine_.Reset(id_, code);
  closed_ = true;
  Break({Code::kIo, "the request was cut off"});
  session_.work_.Set();
}

void Http2Stream::DropUnread() {
  size_t unread = unconsumed_ + (reading_.size() - given_) + arrived_.size();
  if (unread == 0) return;
  session_.engine_.Consume(id_, unread);
  session_.work_.Set();
}

}  // namespace gateway
