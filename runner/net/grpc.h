// SPDX-License-Identifier: Apache-2.0
// Calls of a configured gRPC service, over libcurl's HTTP/2 ("gRPC over HTTP2", the protocol's own
// document). Messages are bytes here; codec/data/protobuf.h reads and writes them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "net/http_client.h"

namespace net {

// The bytes of a message that is received.
inline constexpr size_t kGrpcMessageBytesMax = size_t{16} << 20;

// Takes the next message of a response, which is valid during the call. Also called with nullptr,
// at least once a second. An error ends the call and becomes Stream's result.
using GrpcSink = std::function<Status(const std::string_view* message)>;
// Returns a further message of a request; nullopt behind the last. An error ends the call likewise.
using GrpcSource = std::function<Result<std::optional<std::string>>()>;

// One service at one address; not for use from two threads.
class GrpcChannel {
 public:
  // `url` is http://HOST:PORT or https://HOST:PORT. `bearer` is sent with each call unless it is
  // empty. `options` say whom to trust, as for HttpClient.
  static Result<GrpcChannel> Open(std::string url, Secret bearer, HttpClientOptions options);

  // Calls "/PACKAGE.SERVICE/METHOD" with one message, and returns the response's message. The
  // status of the service becomes an Error: NOT_FOUND is kNotFound; PERMISSION_DENIED kRefused;
  // UNAUTHENTICATED kSetup; INVALID_ARGUMENT, ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED and
  // OUT_OF_RANGE kInvalid; UNIMPLEMENTED kUnsupported; UNAVAILABLE, CANCELLED and DEADLINE_EXCEEDED
  // kTemporary, as is a response that does not come whole; any other kIo.
  Result<std::string> Call(const std::string& method, std::string_view message, Deadline deadline);
  // Does the same for any number of messages on either side. Behind `message`, those of the request
  // are sent as `source` gives them, which may block; nothing is received meanwhile. `source` may
  // be null.
  Status Stream(const std::string& method, std::string_view message, const GrpcSource& source,
                const GrpcSink& sink, Deadline deadline);

 private:
  GrpcChannel(HttpClient client, std::string url, Secret bearer)
      : client_(std::move(client)), url_(std::move(url)), bearer_(std::move(bearer)) {}

  HttpClient client_;
  std::string url_;
  Secret bearer_;
};

}  // namespace net
