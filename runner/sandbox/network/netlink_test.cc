// SPDX-License-Identifier: Apache-2.0
#include "sandbox/network/netlink.h"

#include <linux/netlink.h>
#include <string.h>

#include <catch2/catch.hpp>

namespace sandbox {
namespace {

uint32_t LengthAt(const std::string& bytes, size_t at) {
  uint32_t length = 0;
  ::memcpy(&length, &bytes[at], sizeof length);
  return length;
}
uint16_t NumberAt(const std::string& bytes, size_t at) {
  uint16_t number = 0;
  ::memcpy(&number, &bytes[at], sizeof number);
  return number;
}

TEST_CASE("Numbers of netfilter are in network order") {
  CHECK(Be16(0x0102) == "\1\2");
  CHECK(Be32(0x01020304) == "\1\2\3\4");
  CHECK(Be64(0x0102030405060708) == "\1\2\3\4\5\6\7\x8");
}

TEST_CASE("Messages follow each other, each as long as what was put into it") {
  NetlinkBatch batch;
  batch.Begin(7, NLM_F_CREATE, "head");
  batch.Put(3, "abcde");  // Padded to 8.
  batch.Begin(9, NLM_F_ACK, "");
  const std::string& bytes = batch.bytes();
  REQUIRE(bytes.size() == 16 + 4 + 4 + 8 + 16);
  CHECK(LengthAt(bytes, 0) == 32);
  CHECK(NumberAt(bytes, 4) == 7);
  CHECK(NumberAt(bytes, 6) == (NLM_F_CREATE | NLM_F_REQUEST));
  CHECK(LengthAt(bytes, 8) == 1);
  CHECK(NumberAt(bytes, 20) == 9);  // Four and five bytes, without the padding.
  CHECK(NumberAt(bytes, 22) == 3);
  CHECK(bytes.substr(24, 8) == std::string("abcde\0\0\0", 8));
  CHECK(LengthAt(bytes, 32) == 16);
  CHECK(LengthAt(bytes, 40) == 2);
}

TEST_CASE("A nest holds what was put while it was open, and so does the message") {
  NetlinkBatch batch;
  batch.Begin(1, 0, "");
  size_t outer = batch.Open(5);
  size_t inner = batch.Open(6);
  batch.PutText(2, "abc");
  batch.Close(inner);
  batch.Close(outer);
  const std::string& bytes = batch.bytes();
  CHECK(LengthAt(bytes, 0) == 16 + 4 + 4 + 8);
  CHECK(NumberAt(bytes, 16) == 16);
  CHECK(NumberAt(bytes, 18) == (5 | NLA_F_NESTED));
  CHECK(NumberAt(bytes, 20) == 12);
  CHECK(NumberAt(bytes, 22) == (6 | NLA_F_NESTED));
  CHECK(bytes.substr(28) == std::string("abc\0", 4));
}

}  // namespace
}  // namespace sandbox
