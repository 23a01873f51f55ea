// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http1_client.h"

#include <utility>

#include "gateway/async/limits.h"
#include "gateway/http/head_reader.h"

namespace gateway {
namespace {

bool WantsKeepAlive(const codec::RequestHead& head) {
  if (codec::FieldHasToken(head.fields, "connection", "close")) return false;
  return head.minor_version == 1 || codec::FieldHasToken(head.fields, "connection", "keep-alive");
}

codec::BodyFraming FramingOf(const codec::RequestHead& head) {
  Result<codec::BodyFraming> framing = codec::RequestFraming(head);
  return framing.ok() ? framing.value() : codec::BodyFraming{};
}

}  // namespace

Http1ClientRequest::Http1ClientRequest(Stream& stream, codec::RequestHead head)
    : stream_(stream),
      head_(std::move(head)),
      framing_(FramingOf(head_)),
      body_(stream, framing_),
      answer_(stream),
      keep_alive_(WantsKeepAlive(head_)) {}

Task<Status> Http1ClientRequest::SendInterim(int status, const codec::HttpFields& fields) {
  if (head_.minor_version == 0) co_return Ok();
  std::string_view reason = status == 100 ? "Continue" : "Early Hints";
  std::string text = codec::RenderResponseHead(status, reason, fields);
  Status written = co_await stream_.Write(text);
  co_return written;
}

Task<Status> Http1ClientRequest::SendHead(int status, std::string_view reason,
                                          const codec::HttpFields& fields,
                                          const codec::BodyFraming& framing) {
  codec::HttpFields sent;
  codec::BodyFraming sent_framing = framing;
  switched_ = status == 101;
  if (framing.kind == codec::BodyFraming::kChunked) {
    bool understood = head_.minor_version == 1;
    if (understood) sent.push_back({"Transfer-Encoding", "chunked"});
    if (!understood) sent_framing.kind = codec::BodyFraming::kUntilClose;
  } else if (framing.kind == codec::BodyFraming::kLength) {
    sent.push_back({"Content-Length", std::to_string(framing.length)});
  }
  if (sent_framing.kind == codec::BodyFraming::kUntilClose) keep_alive_ = false;
  if (switched_) {
    sent.push_back({"Connection", "Upgrade"});
  } else if (!keep_alive_) {
    sent.push_back({"Connection", "close"});
  } else if (head_.minor_version == 0) {
    sent.push_back({"Connection", "keep-alive"});
  }
  answer_.Begin(codec::RenderResponseHead(status, reason, fields, sent), sent_framing);
  if (switched_) body_.SwitchProtocols();
  // With a body under way, it may be a while before Settle.
  if (!keep_alive_ && framing_.kind == codec::BodyFraming::kNone) answer_.LeaveEndToLinger();
  return Ok();
}

void Http1ClientRequest::Abort() {
  keep_alive_ = false;
  if (!answer_.begun()) return;  // Settle ends the connection.
  cut_ = true;
  stream_.Abort();
}

Task<bool> Http1ClientRequest::Settle() {
  if (cut_ || switched_) return false;
  if (keep_alive_ && answer_.finished() && body_.done()) {
    body_.Release();
    return true;
  }
  return Linger();
}

Task<bool> Http1ClientRequest::Linger() {
  co_await stream_.Linger();
  co_return false;
}

Task<void> ServeHttp1(Stream& stream, RequestHandler& handler) {
  for (size_t served = 0;; ++served) {
    HeadBounds bounds{kRequestHeadBytesMax,
                      Deadline::After(served == 0 ? kHeadTimeout : kKeepAliveTimeout)};
    HeadText text = co_await ReadHead(stream, bounds);
    bool nothing_sent = text.kind == HeadText::kFailed && stream.buffered().empty();
    if (text.kind == HeadText::kEnd || nothing_sent) {
      stream.FinishWriting();
      co_return;
    }
    Result<codec::RequestHead> head =
        text.kind == HeadText::kHead ? codec::ParseRequestHead(text.text)
                                     : Result<codec::RequestHead>(Error{Code::kInvalid, text.why});
    if (!head.ok()) {
      handler.OnMalformed(head.error().what);
      co_await stream.Linger();
      co_return;
    }
    if (served == 1) stream.OfferResumption();
    Http1ClientRequest request(stream, std::move(head).value());
    co_await handler.Handle(request);
    bool more = co_await request.Settle();
    if (!more) co_return;
  }
}

}  // namespace gateway
