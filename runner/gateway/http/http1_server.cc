// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http1_server.h"

#include "gateway/http/head_reader.h"

namespace gateway {
namespace {

bool KeepsAlive(const codec::ResponseHead& head, const codec::BodyFraming& framing) {
  if (framing.kind == codec::BodyFraming::kUntilClose) return false;
  if (codec::FieldHasToken(head.fields, "connection", "close")) return false;
  return head.minor_version == 1 || codec::FieldHasToken(head.fields, "connection", "keep-alive");
}

}  // namespace

Http1ServerRequest::Http1ServerRequest(UpstreamPool& pool,
                                       std::unique_ptr<UpstreamConnection> connection)
    : pool_(pool), connection_(std::move(connection)), body_(*connection_->stream) {}

Http1ServerRequest::~Http1ServerRequest() {
  bool complete = keep_alive_ && body_.finished() && answer_.has_value() && answer_->done();
  if (!complete) return;
  answer_->Release();
  pool_.Keep(std::move(connection_));
}

Task<Status> Http1ServerRequest::SendHead(std::string_view method, std::string_view target,
                                          const codec::HttpFields& fields,
                                          const codec::BodyFraming& framing) {
  method_ = method;
  codec::HttpFields framed;
  codec::BodyFraming sent = framing;
  // Only an answer can end with its connection.
  if (sent.kind == codec::BodyFraming::kUntilClose) sent.kind = codec::BodyFraming::kChunked;
  if (sent.kind == codec::BodyFraming::kChunked) {
    framed.push_back({"Transfer-Encoding", "chunked"});
  } else if (sent.kind == codec::BodyFraming::kLength) {
    framed.push_back({"Content-Length", std::to_string(sent.length)});
  }
  if (codec::FindField(fields, "upgrade") != nullptr) framed.push_back({"Connection", "Upgrade"});
  body_.Begin(codec::RenderRequestHead(method, target, fields, framed), sent);
  return Ok();
}

Task<Result<codec::ResponseHead>> Http1ServerRequest::ReadHead(Deadline deadline) {
  HeadText text = co_await gateway::ReadHead(stream(), {kResponseHeadBytesMax, deadline});
  heard_ = heard_ || text.kind == HeadText::kHead || !stream().buffered().empty();
  if (text.kind == HeadText::kEnd)
    co_return Error{Code::kIo, "connection closed without a response"};
  if (text.kind != HeadText::kHead) co_return Error{Code::kIo, text.why};
  Result<codec::ResponseHead> head = codec::ParseResponseHead(text.text);
  if (!head.ok()) co_return std::move(head).Context("malformed response");
  int status = head.value().status;
  if (status < 200 && status != 101) co_return head;
  Result<codec::BodyFraming> framing = codec::ResponseFraming(head.value(), method_);
  if (!framing.ok()) co_return Error{Code::kInvalid, "malformed response: " + framing.error().what};
  framing_ = framing.value();
  keep_alive_ = status != 101 && KeepsAlive(head.value(), framing_);
  answer_.emplace(stream(), framing_);
  if (status == 101) {
    answer_->SwitchProtocols();
    body_.Begin({}, codec::BodyFraming{codec::BodyFraming::kUntilClose, 0});
  }
  co_return head;
}

void Http1ServerRequest::Abort() {
  keep_alive_ = false;
  stream().Abort();
}

}  // namespace gateway
