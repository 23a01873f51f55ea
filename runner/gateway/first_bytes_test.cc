// SPDX-License-Identifier: Apache-2.0
#include "gateway/first_bytes.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace gateway {
namespace {

using enum ClientProtocol;

template <size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return std::string(text, kSize - 1);
}

void CheckAll(const std::vector<std::string>& texts, ClientProtocol expected) {
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(RecogniseProtocol(text) == expected);
  }
}

TEST_CASE("A record of TLS is one whatever its version says") {
  CheckAll({Bytes("\x16\x03\x01\0\x05\x01"), Bytes("\x16\x03\x05"), Bytes("\x16\x03\x7f"),
            Bytes("\x16\x03\xff"), Bytes("\x16\x03"), Bytes("\x16\x0f\x01\0\x05\x01"),
            Bytes("\x15\x03\x01"), Bytes("\x14\x03\x03"), Bytes("\x17\x03\x03")},
           kTls);
  CheckAll({Bytes("\x16"), Bytes("\x15"), Bytes("\x16\x0f\x01\0\x05")}, kNothing);
  // Another protocol, whose first byte is a length.
  CheckAll({Bytes("\x16\x01\0\0\x07\0\0\0"), Bytes("\x15\x01\0\0")}, kOther);
}

TEST_CASE("A ClientHello of SSL 2.0's form is TLS") {
  CheckAll({Bytes("\x80\x2e\x01\x03\x01\0\x15"), Bytes("\x80\x2e\x01\0\x02")}, kTls);
  CheckAll({Bytes("\x80"), Bytes("\x80\x2e"), Bytes("\x80\x2e\x01")}, kNothing);
  CheckAll({Bytes("\x80\0\0\x05"), Bytes("\xff\xfb\x01\x03"), Bytes("\x80\x2e\x01\x07")}, kOther);
}

TEST_CASE("A request line is HTTP, also behind empty lines and blanks") {
  CheckAll({"GET /", "M-SEARCH ", "GET\t/", "\r\nGET /", "\n\n\r\n \tGET /", "PRI / HTTP/1.1",
            "\r\n" + std::string("PRI * HTTP/2.0\r\n"), std::string(65, 'A') + " / HTTP/1.1\r\n"},
           kHttp);
  // These are neither usual methods nor lines of something else.
  CheckAll({"get / HTTP/1.1\r\n", "x1 /a b HTTP/1.1", "\r\nget / http/1.0\r\n", "a\t/\tHTTP/1.1\n"},
           kHttp);
  CheckAll({"get key\r\n", "helo a.example\r\n", "QUIT\r\n", "GET:", "{\"a\": 1}", "(a) b",
            Bytes("\1\2\0hello"), Bytes("\0")},
           kOther);
}

TEST_CASE("What may become a request line is waited for, up to a bound") {
  const std::string requests[] = {"GET / HTTP/1.1\r\n", "\r\n\r\nGET / HTTP/1.1\r\n",
                                  "get / HTTP/1.1\r\n"};
  for (const std::string& request : requests) {
    for (size_t size = 0; size < request.size(); ++size) {
      INFO(request << size);
      ClientProtocol protocol = RecogniseProtocol(request.substr(0, size));
      CHECK((protocol == kNothing || protocol == kHttp));
    }
    CHECK(RecogniseProtocol(request) == kHttp);
  }
  CHECK(RecogniseProtocol(std::string(kFirstBytesMax - 1, '\n')) == kNothing);
  for (const std::string& full :
       {std::string(kFirstBytesMax, '\n'), std::string(kFirstBytesMax, 'a'),
        "a " + std::string(kFirstBytesMax, '/')}) {
    CHECK(RecogniseProtocol(full) == kHttp);
  }
}

TEST_CASE("The preface of HTTP/2 is recognised as a whole") {
  CHECK(RecogniseProtocol("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == kHttp2);
  CheckAll({"", "P", "PRI ", "PRI * HTTP/2.0\r"}, kNothing);
}

TEST_CASE("Where only TLS matters, nothing else is waited for") {
  CHECK(RecogniseTls("GE") == kOther);
  CHECK(RecogniseTls("\r\n") == kOther);
  CHECK(RecogniseTls("\x16\x03") == kTls);
  CHECK(RecogniseTls("\x16") == kNothing);
  CHECK(RecogniseTls("") == kNothing);
}

}  // namespace
}  // namespace gateway
