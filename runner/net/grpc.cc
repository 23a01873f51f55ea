// SPDX-License-Identifier: Apache-2.0
#include "net/grpc.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "net/url.h"

namespace net {
namespace {

constexpr size_t kFrameHead = 5;  // A flag, and the length in four bytes.
constexpr size_t kSaidBytesMax = 600;

std::string Framed(std::string_view message) {
  std::string frame(1, '\0');  // Not compressed.
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>(message.size() >> shift & 0xff);
  }
  return frame.append(message);
}

// The messages of a response, from its bytes as they come.
class Frames {
 public:
  Status Feed(std::string_view bytes, const GrpcSink& sink) {
    buffer_.append(bytes);
    size_t from = 0;
    while (buffer_.size() - from >= kFrameHead) {
      const std::string_view rest = std::string_view(buffer_).substr(from);
      size_t size = 0;
      for (size_t i = 1; i < kFrameHead; ++i) size = size << 8 | static_cast<uint8_t>(rest[i]);
      if (rest[0] != 0) return Error{Code::kIo, "a message is compressed"};
      if (size > kGrpcMessageBytesMax) return Error{Code::kIo, "a message is too large"};
      if (rest.size() - kFrameHead < size) break;
      const std::string_view message = rest.substr(kFrameHead, size);
      TRY(sink(&message));
      from += kFrameHead + size;
    }
    buffer_.erase(0, from);
    return Ok();
  }
  bool at_border() const { return buffer_.empty(); }

 private:
  std::string buffer_;
};

// A row for each status of gRPC ("Status codes and their use in gRPC"), by its number.
struct StatusRow {
  Code code;
  const char* name;
};
constexpr auto kStatuses = std::to_array<StatusRow>({
    {Code::kIo, "OK"},
    {Code::kTemporary, "CANCELLED"},
    {Code::kIo, "UNKNOWN"},
    {Code::kInvalid, "INVALID_ARGUMENT"},
    {Code::kTemporary, "DEADLINE_EXCEEDED"},
    {Code::kNotFound, "NOT_FOUND"},
    {Code::kInvalid, "ALREADY_EXISTS"},
    {Code::kRefused, "PERMISSION_DENIED"},
    {Code::kIo, "RESOURCE_EXHAUSTED"},
    {Code::kInvalid, "FAILED_PRECONDITION"},
    {Code::kInvalid, "ABORTED"},
    {Code::kInvalid, "OUT_OF_RANGE"},
    {Code::kUnsupported, "UNIMPLEMENTED"},
    {Code::kIo, "INTERNAL"},
    {Code::kTemporary, "UNAVAILABLE"},
    {Code::kIo, "DATA_LOSS"},
    {Code::kSetup, "UNAUTHENTICATED"},
});

// Returns what the response says of the call, in its head or behind its body.
Status StatusOf(const HttpResponse& response, const std::string& method) {
  const std::string text = response.Header("grpc-status");
  size_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) {
    if (response.status == 200) return Error{Code::kTemporary, method + ": the response broke off"};
    return Error{response.status == 401   ? Code::kSetup
                 : response.status == 403 ? Code::kRefused
                                          : Code::kTemporary,
                 method + ": HTTP status " + std::to_string(response.status)};
  }
  if (number == 0) return Ok();
  const StatusRow row = number < kStatuses.size() ? kStatuses[number] : kStatuses[2];
  const std::string said = codec::PercentDecode(response.Header("grpc-message"));
  return Error{row.code, method + ": " + row.name + ": " + codec::NeutralLine(said, kSaidBytesMax)};
}

}  // namespace

Result<GrpcChannel> GrpcChannel::Open(std::string url, Secret bearer, HttpClientOptions options) {
  options.http2 = true;
  while (url.ends_with('/')) url.pop_back();
  return GrpcChannel(TRY(HttpClient::Create(std::move(options))), std::move(url),
                     std::move(bearer));
}

Result<std::string> GrpcChannel::Call(const std::string& method, std::string_view message,
                                      Deadline deadline) {
  std::optional<std::string> response;
  auto sink = [&](const std::string_view* one) -> Status {
    if (one == nullptr) return Ok();
    if (response) return Error{Code::kIo, "more than one message"};
    response = std::string(*one);
    return Ok();
  };
  TRY(Stream(method, message, nullptr, sink, deadline));
  if (!response) return Error{Code::kIo, method + ": the response has no message"};
  return std::move(*response);
}

// A single message goes out as a body of known length: libcurl 7.88 can lose a response that comes
// while it learns that there is no more to send.
Status GrpcChannel::Stream(const std::string& method, std::string_view message,
                           const GrpcSource& source, const GrpcSink& sink, Deadline deadline) {
  const std::string name = method.substr(method.rfind('/') + 1);
  HttpRequest request;
  request.method = "POST";
  request.url = url_ + method;
  request.headers = {{"content-type", "application/grpc"}, {"te", "trailers"}};
  if (!bearer_.empty()) request.bearer = &bearer_;
  std::string piece = Framed(message);
  bool begun = false;
  if (!source) {
    request.body = std::move(piece);
  } else {
    request.body_source = [&]() -> Result<std::string_view> {
      if (!std::exchange(begun, true)) return std::string_view(piece);
      const std::optional<std::string> next = TRY(source());
      piece = next ? Framed(*next) : "";
      return std::string_view(piece);
    };
  }
  Frames frames;
  Result<HttpResponse> response = client_.Send(
      request,
      [&](const HttpResponse&, std::string_view bytes) {
        return bytes.empty() ? sink(nullptr) : frames.Feed(bytes, sink);
      },
      deadline);
  if (!response.ok()) return std::move(response).Context(name).error();
  TRY(StatusOf(response.value(), name));
  if (!frames.at_border()) return Error{Code::kTemporary, name + ": the response broke off"};
  return Ok();
}

}  // namespace net
