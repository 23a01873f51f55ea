// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_client.h"

#include "gateway/http/http2_head.h"
#include "gateway/http/http2_session.h"

namespace gateway {
namespace {

class Http2ClientRequest final : public ClientRequest {
 public:
  Http2ClientRequest(Http2Stream& stream, Http2Request request)
      : stream_(stream), request_(std::move(request)) {}

  const codec::RequestHead& head() const override { return request_.head; }
  codec::BodyFraming framing() const override { return request_.framing; }
  BodyReader& body() override { return stream_; }

  Task<Status> SendInterim(int status, const codec::HttpFields& fields) override {
    co_return stream_.AnswerInterim(RenderHttp2Response(status, fields, {}));
  }

  Task<Status> SendHead(int status, std::string_view, const codec::HttpFields& fields,
                        const codec::BodyFraming& framing) override {
    bool end = framing.kind == codec::BodyFraming::kNone;
    co_return stream_.SendResponse(RenderHttp2Response(status, fields, framing), end);
  }

  BodyWriter& answer() override { return stream_; }

  void Abort() override {
    bool begun = stream_.answered();
    stream_.Reset(begun ? Http2Code::kInternalError : Http2Code::kProtocolError);
  }

  void CloseAfter() override {}
  void WhenGone(std::function<void()> call) override { stream_.WhenGone(std::move(call)); }
  bool is_http2() const override { return true; }

 private:
  Http2Stream& stream_;
  Http2Request request_;
};

class Acceptor final : public Http2Session::Acceptor {
 public:
  Acceptor(std::string_view scheme, RequestHandler& handler) : scheme_(scheme), handler_(handler) {}

  Task<void> Serve(Http2Stream& stream, Http2Stream::Head head) override {
    Result<Http2Request> request = ParseHttp2Request(head.fields, head.end, scheme_);
    if (!request.ok()) {
      handler_.OnMalformed(request.error().what);
      stream.Reset(Http2Code::kProtocolError);
      co_return;
    }
    Http2ClientRequest carried(stream, std::move(request).value());
    co_await handler_.Handle(carried);
  }

  void OnMalformed(std::string_view why) override { handler_.OnMalformed(why); }

 private:
  std::string_view scheme_;
  RequestHandler& handler_;
};

}  // namespace

Task<void> ServeHttp2(EventLoop& loop, Stream& stream, std::string_view scheme,
                      RequestHandler& handler) {
  Acceptor acceptor(scheme, handler);
  Http2Session session(loop, stream, &acceptor);
  co_await session.Run();
}

}  // namespace gateway
