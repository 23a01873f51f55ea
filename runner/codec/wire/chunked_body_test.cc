// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/chunked_body.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace codec {
namespace {

struct Decoded {
  bool ok = true;
  bool finished = false;
  std::string data;
  size_t consumed = 0;
};

// Feeds `in` in steps of `step` bytes, as a connection does.
Decoded Decode(const std::string& in, size_t step) {
  ChunkedDecoder decoder;
  Decoded result;
  size_t available = 0;
  while (!result.finished) {
    std::string_view offered =
        std::string_view(in).substr(result.consumed, available - result.consumed);
    Result<ChunkedDecoder::Piece> piece = decoder.Next(offered);
    result.ok = piece.ok();
    if (!result.ok) break;
    result.data += piece.value().data;
    result.consumed += piece.value().consumed;
    result.finished = piece.value().finished;
    if (piece.value().consumed > 0 || result.finished) continue;
    if (available == in.size()) break;
    available = std::min(in.size(), available + step);
  }
  return result;
}

TEST_CASE("ChunkedDecoder gives the same bytes however they arrive") {
  const std::string body = "5;ext=\"a;b\"\r\nhello\r\nB\r\n, big world\r\n0\r\nX-T: 1\r\n\r\nNEXT";
  for (size_t step : {size_t{1}, size_t{2}, size_t{7}, body.size()}) {
    Decoded decoded = Decode(body, step);
    REQUIRE(decoded.ok);
    CHECK(decoded.finished);
    CHECK(decoded.data == "hello, big world");
    CHECK(body.substr(decoded.consumed) == "NEXT");
  }
}

TEST_CASE("ChunkedDecoder waits for what is missing") {
  for (const char* body : {"", "5", "5\r", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n0\r\n"}) {
    Decoded decoded = Decode(body, 1);
    INFO(body);
    CHECK(decoded.ok);
    CHECK_FALSE(decoded.finished);
  }
}

TEST_CASE("ChunkedDecoder refuses what is not chunked") {
  for (const char* body :
       {"5\nhello\n0\n\n", "-5\r\nhello\r\n", "+5\r\nhello\r\n", "0x5\r\nhello\r\n",
        "\r\nhello\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "g\r\n", "5\r\nhelloworld",
        "5\r\nhello\n\n", "10000000000000000\r\n", "1000000000000000\r\n", "5\rhello",
        "0\r\nX: y\nZ: w\r\n\r\n"}) {
    INFO(body);
    CHECK_FALSE(Decode(body, 100).ok);
  }
}

TEST_CASE("ChunkedDecoder bounds its size lines and its trailers") {
  CHECK_FALSE(Decode("5;" + std::string(ChunkedDecoder::kLineBytesMax, 'x'), 1000).ok);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 20; ++i) trailers += "X: " + std::string(1000, 'y') + "\r\n";
  CHECK_FALSE(Decode(trailers + "\r\n", 5000).ok);
}

TEST_CASE("A chunk's head says its size in hexadecimal") {
  CHECK(RenderChunkHead(1) == "1\r\n");
  CHECK(RenderChunkHead(16384) == "4000\r\n");
}

}  // namespace
}  // namespace codec
