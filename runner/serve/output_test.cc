// SPDX-License-Identifier: Apache-2.0
#include "serve/output.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace serve {
namespace {

TEST_CASE("bytes that are not UTF-8 are Base64, and a character is not cut") {
  TextPieces pieces;
  auto take = [&pieces](std::string_view bytes) {
    std::string line;
    return pieces.Take(bytes, &line) ? line : "waits" + line;
  };
  auto finish = [&pieces] {
    std::string line;
    return pieces.Finish(&line) ? line : "waits" + line;
  };
  CHECK(take("a\xc3") == "\"text\":\"a\"");
  CHECK(take("\xa4\n") == "\"text\":\"\xc3\xa4\\n\"");
  CHECK(take("\xe2\x82") == "waits");
  CHECK(take("x") == "\"base64\":\"4oJ4\"");
  CHECK(take("\xff") == "waits");
  CHECK(finish() == "\"base64\":\"/w==\"");
  CHECK(finish() == "waits");
}

TEST_CASE("text ends with a whole character") {
  CHECK(WholeText("ab") == "ab");
  CHECK(WholeText("ab\xf0\x9f\x98") == "ab");
  CHECK(WholeText("a\xff\xff\xff\xff") == "a\xff\xff\xff\xff");
}

TEST_CASE("what is collected has a bound, as bytes and as JSON") {
  CollectRoom room;
  const std::string whole(kCollectedBytesMax, 'x');
  CHECK(room.Take(whole).size() == whole.size());
  CHECK(room.Take("x").empty());
  CollectRoom escaped;
  CHECK(escaped.Take(std::string(kCollectedBytesMax, '\1')).size() == kCollectedBytesMax / 2);
  CHECK(escaped.Take("x").empty());
  CollectRoom other;
  CHECK(other.Take(std::string(kCollectedBytesMax, '\xff')).size() == kCollectedBytesMax);
}

TEST_CASE("lines wait for their reader, and a reader that is gone is seen") {
  ::signal(SIGPIPE, SIG_IGN);
  auto pipe = sys::Pipe();
  REQUIRE(pipe.ok());
  auto [reads, writes] = std::move(pipe).value();
  Output output(writes.get());
  const std::string line(4 << 20, 'x');
  output.Write(line);
  CHECK(output.waits());
  CHECK(output.full());
  std::string all(line.size(), '\0');
  for (size_t at = 0; at < all.size();) {
    ssize_t n = ::read(reads.get(), all.data() + at, all.size() - at);
    REQUIRE(n > 0);
    at += static_cast<size_t>(n);
    output.Flush();
  }
  CHECK(all == line);
  CHECK_FALSE(output.waits());
  CHECK_FALSE(output.closed());
  reads.Close();
  output.Write("y");
  CHECK(output.closed());
}

}  // namespace
}  // namespace serve
