// SPDX-License-Identifier: Apache-2.0
// HTTP/1 towards clients: requests one after another on one connection.
#pragma once

#include <optional>

#include "gateway/async/stream.h"
#include "gateway/http/http1_body.h"
#include "gateway/http/message.h"

namespace gateway {

class Http1ClientRequest final : public ClientRequest {
 public:
  // `stream` holds what follows the head, and outlives this. A head whose framing is malformed is
  // given a framing of kNone: RequestFraming says what is wrong with it.
  Http1ClientRequest(Stream& stream, codec::RequestHead head);

  const codec::RequestHead& head() const override { return head_; }
  codec::BodyFraming framing() const override { return framing_; }
  BodyReader& body() override { return body_; }
  Task<Status> SendInterim(int status, const codec::HttpFields& fields) override;
  Task<Status> SendHead(int status, std::string_view reason, const codec::HttpFields& fields,
                        const codec::BodyFraming& framing) override;
  BodyWriter& answer() override { return answer_; }
  void Abort() override;
  void CloseAfter() override { keep_alive_ = false; }
  bool is_http2() const override { return false; }

  // Called after the answer. Returns true if the connection can carry another request; otherwise
  // ends it so that the client can still read all of the answer.
  Task<bool> Settle();

 private:
  Task<bool> Linger();

  Stream& stream_;
  codec::RequestHead head_;
  codec::BodyFraming framing_;
  Http1BodyReader body_;
  Http1BodyWriter answer_;
  bool keep_alive_;
  bool cut_ = false;       // Aborted in the middle of an answer.
  bool switched_ = false;  // 101 was sent.
};

// Reads requests and hands each to `handler`, until the client finishes, one of them ends the
// connection, or a malformed request arrives.
Task<void> ServeHttp1(Stream& stream, RequestHandler& handler);

}  // namespace gateway
