// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_handshake.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

constexpr char kKey[] = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr char kAccept[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

RequestHead Request() {
  return {"GET",
          "/",
          1,
          {{"Connection", "keep-alive, Upgrade"},
           {"Upgrade", "WebSocket"},
           {"Sec-WebSocket-Version", "13"},
           {"Sec-WebSocket-Key", kKey}}};
}

ResponseHead Answer(const std::string& extensions = "") {
  ResponseHead head{
      1,
      101,
      "",
      {{"Connection", "upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", kAccept}}};
  if (!extensions.empty()) head.fields.push_back({"Sec-WebSocket-Extensions", extensions});
  return head;
}

TEST_CASE("RFC 6455's example of a key is accepted with its example") {
  CHECK(WebSocketAccept(kKey) == kAccept);
}

TEST_CASE("A request for WebSocket is GET with version 13 and one key") {
  CHECK(CheckWebSocketRequest(Request()).ok());
  RequestHead post = Request();
  post.method = "POST";
  CHECK_FALSE(CheckWebSocketRequest(post).ok());
  RequestHead old = Request();
  old.minor_version = 0;
  CHECK_FALSE(CheckWebSocketRequest(old).ok());
  for (const HttpField& field : Request().fields) {
    INFO(field.name);
    RequestHead without = Request();
    std::erase_if(without.fields, [&](const HttpField& f) { return f.name == field.name; });
    CHECK_FALSE(CheckWebSocketRequest(without).ok());
    RequestHead other = Request();
    for (HttpField& f : other.fields) f.value = f.name == field.name ? "x" : f.value;
    CHECK_FALSE(CheckWebSocketRequest(other).ok());
    RequestHead twice = Request();
    twice.fields.push_back(field);
    CHECK(CheckWebSocketRequest(twice).ok() == (field.name == "Connection"));
  }
}

TEST_CASE("An answer switches to WebSocket and proves that the server knows it") {
  CHECK(CheckWebSocketResponse(Answer(), kKey).ok());
  CHECK_FALSE(CheckWebSocketResponse(Answer(), "AAAAAAAAAAAAAAAAAAAAAA==").ok());
  ResponseHead fine = Answer();
  fine.status = 200;
  CHECK_FALSE(CheckWebSocketResponse(fine, kKey).ok());
  ResponseHead other = Answer();
  other.fields[1].value = "h2c";
  CHECK_FALSE(CheckWebSocketResponse(other, kKey).ok());
}

TEST_CASE("Only permessage-deflate that keeps no context is agreed on") {
  const auto agreed = [](const std::string& extensions, bool offered = true) {
    Result<bool> agreement = AgreesToWebSocketDeflate(Answer(extensions).fields, offered);
    return agreement.ok() && agreement.value();
  };
  CHECK_FALSE(AgreesToWebSocketDeflate(Answer().fields, true).value());
  CHECK(agreed(std::string(kWebSocketDeflateOffer)));
  CHECK(agreed("permessage-deflate;server_no_context_takeover"));
  CHECK(agreed("permessage-deflate; server_no_context_takeover; server_max_window_bits=10"));
  CHECK_FALSE(agreed(std::string(kWebSocketDeflateOffer), false));
  for (const char* bad :
       {"permessage-deflate", "permessage-deflate; client_no_context_takeover", "x-webkit-deflate",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=16",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
        "permessage-deflate; server_no_context_takeover, permessage-deflate", ","}) {
    INFO(bad);
    CHECK_FALSE(AgreesToWebSocketDeflate(Answer(bad).fields, true).ok());
  }
}

TEST_CASE("An offer of permessage-deflate is found among others") {
  const auto offers = [](const char* value) {
    return OffersWebSocketDeflate({{"Sec-WebSocket-Extensions", value}});
  };
  CHECK(offers("foo, permessage-deflate; client_max_window_bits"));
  CHECK(offers("permessage-deflate"));
  CHECK_FALSE(offers("permessage-bzip2"));
  CHECK_FALSE(OffersWebSocketDeflate({}));
}

}  // namespace
}  // namespace codec
