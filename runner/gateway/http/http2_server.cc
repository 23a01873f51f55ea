// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_server.h"

#include "gateway/http/http2_head.h"
#include "gateway/http/http2_session.h"
#include "gateway/http/limits.h"

namespace gateway {

struct Http2Upstreams::Connection {
  Connection(EventLoop& loop, std::unique_ptr<Stream> connected)
      : stream(std::move(connected)), session(loop, *stream, nullptr), over(loop) {}

  std::unique_ptr<Stream> stream;
  Http2Session session;
  Signal over;
  size_t requests = 0;  // That hold a pointer to this.
};

class Http2ServerRequest final : public ServerRequest {
 public:
  explicit Http2ServerRequest(Http2Upstreams::Connection& connection)
      : connection_(connection), used_(connection.session.opened() > 0) {
    ++connection_.requests;
  }
  ~Http2ServerRequest() override {
    if (stream_ != nullptr) connection_.session.Release(*stream_);
    --connection_.requests;
  }
  Http2ServerRequest(const Http2ServerRequest&) = delete;
  Http2ServerRequest& operator=(const Http2ServerRequest&) = delete;

  Task<Status> SendHead(std::string_view method, std::string_view target,
                        const codec::HttpFields& fields,
                        const codec::BodyFraming& framing) override {
    method_ = method;
    codec::SecretFields sent = RenderHttp2Request(
        method, connection_.stream->tls() ? "https" : "http", target, fields, framing);
    // They are passed on: the client speaks HTTP/2 too. Servers of gRPC insist on this.
    if (codec::FindField(sent, "te") == nullptr) sent.push_back({"te", "trailers"});
    bool end = framing.kind == codec::BodyFraming::kNone ||
               (framing.kind == codec::BodyFraming::kLength && framing.length == 0);
    Result<Http2Stream*> opened = connection_.session.Open(sent, end);
    if (!opened.ok()) co_return std::move(opened).error();
    stream_ = opened.value();
    co_return Ok();
  }

  BodyWriter& body() override { return *stream_; }

  Task<Result<codec::ResponseHead>> ReadHead(Deadline deadline) override {
    Result<Http2Stream::Head> read = co_await stream_->ReadHead(deadline);
    if (!read.ok()) co_return std::move(read).error();
    Result<codec::ResponseHead> head = ParseHttp2Response(read.value().fields);
    if (!head.ok()) co_return std::move(head).Context("malformed response");
    if (head.value().status < 200) co_return head;
    Result<codec::BodyFraming> framing =
        Http2ResponseFraming(head.value(), read.value().end, method_);
    if (!framing.ok())
      co_return Error{Code::kInvalid, "malformed response: " + framing.error().what};
    framing_ = framing.value();
    co_return head;
  }

  codec::BodyFraming framing() const override { return framing_; }
  BodyReader& answer() override { return *stream_; }

  void Abort() override {
    if (stream_ != nullptr) stream_->Reset(Http2Code::kCancel);
  }

  bool may_repeat() const override {
    if (stream_ == nullptr) return true;
    return !stream_->answered() && (used_ || stream_->refused());
  }

 private:
  Http2Upstreams::Connection& connection_;
  bool used_;
  Http2Stream* stream_ = nullptr;
  std::string method_;
  codec::BodyFraming framing_;
};

Http2Upstreams::Http2Upstreams(EventLoop& loop) : loop_(loop) {}

Http2Upstreams::~Http2Upstreams() { ENSURE(connections_.empty()); }

std::unique_ptr<ServerRequest> Http2Upstreams::Take() {
  connections_.remove_if([](const std::unique_ptr<Connection>& connection) {
    return connection->over.is_set() && connection->requests == 0;
  });
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (connection->session.may_open()) return std::make_unique<Http2ServerRequest>(*connection);
    // It is of no use and not in use: a server may shut each one behind its first answer.
    bool idle = connection->requests == 0 && !connection->over.is_set();
    if (idle) connection->session.Close();
  }
  return nullptr;
}

bool Http2Upstreams::full() const { return connections_.size() >= kHttp2ConnectionsMax; }

void Http2Upstreams::Add(std::unique_ptr<Stream> stream) {
  connections_.push_back(std::make_unique<Connection>(loop_, std::move(stream)));
  loop_.Spawn(Carry(*connections_.back()));
}

Task<void> Http2Upstreams::Carry(Connection& connection) {
  co_await connection.session.Run();
  connection.over.Set();
}

Task<void> Http2Upstreams::Close() {
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (!connection->over.is_set()) connection->session.Close();
    co_await connection->over.Within(Deadline::Never());
    ENSURE(connection->requests == 0);
  }
  connections_.clear();
}

}  // namespace gateway
