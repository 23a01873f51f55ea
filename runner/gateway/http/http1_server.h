// SPDX-License-Identifier: Apache-2.0
// HTTP/1 towards servers: one request on a pooled connection, which returns to the pool after a
// complete response.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gateway/http/http1_body.h"
#include "gateway/http/message.h"
#include "gateway/http/upstream_pool.h"

namespace gateway {

class Http1ServerRequest final : public ServerRequest {
 public:
  Http1ServerRequest(UpstreamPool& pool, std::unique_ptr<UpstreamConnection> connection);
  ~Http1ServerRequest() override;
  Http1ServerRequest(const Http1ServerRequest&) = delete;
  Http1ServerRequest& operator=(const Http1ServerRequest&) = delete;

  // Sends the head. An Upgrade field among `fields` is asked for.
  Task<Status> SendHead(std::string_view method, std::string_view target,
                        const codec::HttpFields& fields,
                        const codec::BodyFraming& framing) override;
  BodyWriter& body() override { return body_; }
  Task<Result<codec::ResponseHead>> ReadHead(Deadline deadline) override;
  codec::BodyFraming framing() const override { return framing_; }
  BodyReader& answer() override { return *answer_; }
  void Abort() override;
  bool may_repeat() const override { return connection_->used && !heard_; }

 private:
  Stream& stream() { return *connection_->stream; }

  UpstreamPool& pool_;
  std::unique_ptr<UpstreamConnection> connection_;
  Http1BodyWriter body_;
  std::optional<Http1BodyReader> answer_;
  codec::BodyFraming framing_;
  std::string method_;
  bool heard_ = false;       // Something of an answer has arrived.
  bool keep_alive_ = false;  // True if the server keeps the connection.
};

}  // namespace gateway
