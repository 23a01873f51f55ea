// SPDX-License-Identifier: Apache-2.0
#include "codec/data/gzip.h"

#include <zlib.h>

#include <catch2/catch.hpp>

namespace codec {
namespace {

std::string Unpack(std::string packed, size_t size) {
  std::string bytes(size + 1, '\0');
  z_stream stream = {};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

TEST_CASE("Gzip gives a file that unpacks to the same bytes") {
  for (const std::string& bytes :
       {std::string(), std::string("a\0b", 3), std::string(99999, 'x')}) {
    CHECK(Unpack(Gzip(bytes), bytes.size()) == bytes);
  }
  CHECK(Gzip(std::string(99999, 'x')).size() < 1000);
}

}  // namespace
}  // namespace codec
