// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/http_head.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

RequestHead Parsed(const std::string& block) {
  Result<RequestHead> head = ParseRequestHead(block);
  INFO(block);
  REQUIRE(head.ok());
  return std::move(head).value();
}

// A request with these lines behind its request line and Host.
std::string Request(const std::string& lines) {
  return "POST /x HTTP/1.1\r\nHost: api\r\n" + lines + "\r\n";
}

bool Refused(const std::string& block) { return !ParseRequestHead(block).ok(); }

bool FramingRefused(const std::string& lines) {
  return !RequestFraming(Parsed(Request(lines))).ok();
}

ResponseHead Answer(const std::string& block) {
  Result<ResponseHead> head = ParseResponseHead(block);
  REQUIRE(head.ok());
  return std::move(head).value();
}

TEST_CASE("ScanHead finds the end of a head and nothing but CRLF line ends") {
  CHECK(ScanHead("GET / HTTP/1.1\r\nHost: a\r\n").state == HeadScan::kPartial);
  CHECK(ScanHead("GET / HTTP/1.1\r").state == HeadScan::kPartial);
  CHECK(ScanHead("").state == HeadScan::kPartial);
  HeadScan scan = ScanHead("GET / HTTP/1.1\r\n\r\nbody");
  CHECK(scan.state == HeadScan::kComplete);
  CHECK(scan.size == 18);
  CHECK(ScanHead("GET / HTTP/1.1\n").state == HeadScan::kMalformed);
  CHECK(ScanHead("GET / HTTP/1.1\rHost").state == HeadScan::kMalformed);
  CHECK(ScanHead("A: b\r\r\n").state == HeadScan::kMalformed);
}

TEST_CASE("ParseRequestHead reads method, target, version and fields") {
  RequestHead head = Parsed("GET /a?b=c HTTP/1.0\r\nA:  b c \t\r\nEmpty:\r\n\r\n");
  CHECK(head.method == "GET");
  CHECK(head.target == "/a?b=c");
  CHECK(head.minor_version == 0);
  REQUIRE(head.fields.size() == 2);
  CHECK(head.fields[0].value == "b c");
  CHECK(head.fields[1].value.empty());
  CHECK(FindField(head.fields, "EMPTY") == &head.fields[1]);
  CHECK(FindField(head.fields, "B") == nullptr);
}

TEST_CASE("ParseRequestHead refuses request lines that two readers could read differently") {
  const std::string rest = "\r\nHost: a\r\n\r\n";
  for (const char* line : {"", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ",
                           " GET / HTTP/1.1", "GET / HTTP/2.0", "GET / http/1.1", "GET / HTTP/1.10",
                           "G@T / HTTP/1.1", "GET /a b HTTP/1.1", "GET\t/ HTTP/1.1",
                           "GET /\x01 HTTP/1.1", "GET /\x7f HTTP/1.1", "GET /\xff HTTP/1.1"}) {
    INFO(line);
    CHECK(Refused(line + rest));
  }
  CHECK_FALSE(Refused("GET / HTTP/1.1" + rest));
}

TEST_CASE("ParseRequestHead refuses methods longer than any in use") {
  CHECK_FALSE(Refused("VERSION-CONTROL / HTTP/1.1\r\nHost: a\r\n\r\n"));
  CHECK(Refused(std::string(65, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n"));
}

TEST_CASE("A method is capitals, so that no two readers take it for different ones") {
  for (const char* method : {"GET", "M-SEARCH", "WEBSOCKET_TEXT"}) CHECK(IsMethod(method));
  for (const char* method : {"", "get", "Get", "GET ", "G3T", "GE\tT", "G.T"}) {
    CAPTURE(method);
    CHECK_FALSE(IsMethod(method));
    std::string head = std::string(method) + " / HTTP/1.1\r\nHost: h\r\n\r\n";
    CHECK_FALSE(ParseRequestHead(head).ok());
  }
}

TEST_CASE("ParseRequestHead refuses malformed header lines") {
  for (const char* line :
       {" folded\r\n", "\tfolded\r\n", "X-Test value\r\n", "X-Test : v\r\n", "X@Test: v\r\n",
        ": v\r\n", "X-Test: a\x7f\r\n", "X-Test: a\x01\r\n", "X-Test: \xff\r\n"}) {
    INFO(line);
    CHECK(Refused(Request(line)));
  }
  CHECK(Refused(Request(std::string("X-Test: a\0b\r\n", 14))));
  CHECK(Refused(Request("X-Test: a\rb\r\n")));
  CHECK_FALSE(Refused(Request("X-Test: a\tb \xc3\xa9\r\n")));
}

TEST_CASE("ParseRequestHead wants exactly one Host in HTTP/1.1") {
  CHECK(Refused("GET / HTTP/1.1\r\n\r\n"));
  CHECK(Refused("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"));
  CHECK(Refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"));
  CHECK_FALSE(Refused("GET / HTTP/1.0\r\n\r\n"));
}

TEST_CASE("Connection lists tokens and nominates nothing that frames or routes") {
  CHECK(Refused(Request("Connection: x guard\r\n")));
  CHECK(Refused(Request("Connection: content-length\r\n")));
  CHECK(Refused(Request("Connection: close, Transfer-Encoding\r\n")));
  CHECK(Refused(Request("Connection: HOST\r\n")));
  CHECK(Refused(Request("Connection: close,\r\n")));
  CHECK_FALSE(Refused(Request("Connection: keep-alive, X-Mine\r\n")));
}

TEST_CASE("A block must end where its head ends") {
  CHECK(Refused("GET / HTTP/1.1\r\nHost: a\r\n\r\nmore"));
  CHECK(Refused("GET / HTTP/1.1\r\nHost: a\r\n"));
}

TEST_CASE("RequestFraming refuses both Content-Length and Transfer-Encoding in either order") {
  CHECK(FramingRefused("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"));
  CHECK(FramingRefused("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"));
  CHECK(FramingRefused("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"));
}

TEST_CASE("RequestFraming takes equal lengths and refuses differing or odd ones") {
  CHECK(FramingRefused("Content-Length: 0\r\nContent-Length: 50\r\n"));
  CHECK(FramingRefused("Content-Length: 42\r\nContent-Length: abc\r\n"));
  for (const char* value : {"abc", "+5", "-1", "0x5", "5 5", "5,5", "", "9223372036854775808",
                            "99999999999999999999999"}) {
    INFO(value);
    CHECK(FramingRefused(std::string("Content-Length: ") + value + "\r\n"));
  }
  Result<BodyFraming> twice =
      RequestFraming(Parsed(Request("Content-Length: 42\r\nContent-Length: 42\r\n")));
  REQUIRE(twice.ok());
  CHECK(twice.value().kind == BodyFraming::kLength);
  CHECK(twice.value().length == 42);
}

TEST_CASE("RequestFraming knows the single coding chunked and no other") {
  for (const char* value : {"gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked",
                            "chunkedx", "chunked,", ",chunked", "\"chunked\"", "chunked;q=1", ""}) {
    INFO(value);
    CHECK(FramingRefused(std::string("Transfer-Encoding: ") + value + "\r\n"));
  }
  CHECK(FramingRefused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"));
  Result<BodyFraming> framing = RequestFraming(Parsed(Request("Transfer-Encoding: Chunked\r\n")));
  REQUIRE(framing.ok());
  CHECK(framing.value().kind == BodyFraming::kChunked);
  CHECK_FALSE(RequestFraming(Parsed("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")).ok());
}

TEST_CASE("A request without framing fields has no body") {
  Result<BodyFraming> framing = RequestFraming(Parsed(Request("")));
  REQUIRE(framing.ok());
  CHECK(framing.value().kind == BodyFraming::kNone);
}

TEST_CASE("ParseResponseHead reads a status line with or without a reason") {
  CHECK(Answer("HTTP/1.1 200 OK\r\n\r\n").status == 200);
  CHECK(Answer("HTTP/1.1 404 Not Found\r\n\r\n").reason == "Not Found");
  CHECK(Answer("HTTP/1.0 200\r\n\r\n").minor_version == 0);
  CHECK(Answer("HTTP/1.1 200 \r\n\r\n").reason.empty());
  CHECK(Answer("HTTP/1.1 999 Denied\r\n\r\n").status == 999);
  for (const char* line :
       {"HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 x", "HTTP/2 200 OK", "HTTP/1.1  200 OK",
        "ICY 200 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 200 \x01"}) {
    INFO(line);
    CHECK_FALSE(ParseResponseHead(std::string(line) + "\r\n\r\n").ok());
  }
}

TEST_CASE("ResponseFraming knows which answers have no body") {
  const std::string length = "Content-Length: 5\r\n\r\n";
  CHECK(ResponseFraming(Answer("HTTP/1.1 200 OK\r\n" + length), "HEAD").value().kind ==
        BodyFraming::kNone);
  for (const char* status : {"204", "304", "100", "101"}) {
    ResponseHead head = Answer("HTTP/1.1 " + std::string(status) + " x\r\n" + length);
    CHECK(ResponseFraming(head, "GET").value().kind == BodyFraming::kNone);
  }
  CHECK(ResponseFraming(Answer("HTTP/1.1 200 OK\r\n" + length), "GET").value().length == 5);
}

TEST_CASE("An answer without framing fields ends with its connection") {
  CHECK(ResponseFraming(Answer("HTTP/1.1 200 OK\r\n\r\n"), "GET").value().kind ==
        BodyFraming::kUntilClose);
}

TEST_CASE("ResponseFraming refuses an answer that contradicts itself, even to HEAD") {
  ResponseHead head =
      Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
  CHECK_FALSE(ResponseFraming(head, "GET").ok());
  CHECK_FALSE(ResponseFraming(head, "HEAD").ok());
}

TEST_CASE("EndToEndFields drops hop-by-hop, nominated and framing fields") {
  RequestHead head =
      Parsed(Request("Connection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
                     "Proxy-Authorization: x\r\nUpgrade: h2c\r\nExpect: 100-continue\r\n"
                     "Content-Length: 5\r\nTrailer: x\r\nAccept: y\r\n"));
  HttpFields kept = EndToEndFields(head.fields);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].name == "Host");
  CHECK(kept[1].name == "Accept");
}

TEST_CASE("What is rendered is read back as the same head") {
  RequestHead head = Parsed(RenderRequestHead("GET", "/x?y", {{"Host", "a"}, {"B", "c"}}));
  CHECK(head.target == "/x?y");
  CHECK(head.fields.size() == 2);
  CHECK(Answer(RenderResponseHead(403, "Forbidden", {{"A", "b"}})).reason == "Forbidden");
}

TEST_CASE("Behind a body stands nothing that was judged or dropped in front of it") {
  Result<HttpFields> trailers = ParseTrailers(
      "X-Sum: 1\r\nX-HTTP-Method-Override: DELETE\r\nx_http_method: DELETE\r\nX-Original-URL: "
      "/a\r\n"
      "X_Rewrite_Url: /a\r\nTransfer_Encoding: chunked\r\nContent_Length: 5\r\nHost: b\r\n"
      "Authorization: c\r\nContent_Type: d\r\n\r\n");
  REQUIRE(trailers.ok());
  REQUIRE(trailers.value().size() == 1);
  CHECK(trailers.value()[0].name == "X-Sum");
}

TEST_CASE("Codings are those of all fields together") {
  using Names = std::vector<std::string>;
  CHECK(CodingsOf({}).empty());
  CHECK(CodingsOf({{"Content-Encoding", "Identity, ,identity"}}).empty());
  CHECK(CodingsOf({{"Content-Encoding", "identity"}, {"content_encoding", "GZIP , br"}}) ==
        Names{"gzip", "br"});
  CHECK(CodingsOf({{"grpc-encoding", "gzip"}}).empty());
  CHECK(CodingsOf({{"grpc-encoding", "gzip"}}, "grpc-encoding") == Names{"gzip"});
}

TEST_CASE("A body has the type of its one field") {
  CHECK(FindContentType({}) == nullptr);
  CHECK(FindContentType({{"content-TYPE", "a/b"}})->value == "a/b");
  CHECK(FindContentType({{"Content-Type", "a/b"}, {"Content_Type", "a/b"}}) == nullptr);
  CHECK(FindContentType({{"Content_Type", "a/b"}}) == nullptr);
}

}  // namespace
TEST_CASE("A request head with a framing header in the spelling of CGI is refused") {
  CHECK_FALSE(ParseRequestHead("GET / HTTP/1.1\r\nHost: h\r\nContent_Length: 5\r\n\r\n").ok());
  CHECK_FALSE(ParseRequestHead("GET / HTTP/1.1\r\nHost: h\r\ntransfer_encoding: x\r\n\r\n").ok());
  CHECK(ParseRequestHead("GET / HTTP/1.1\r\nHost: h\r\nx_custom: 5\r\n\r\n").ok());
}

}  // namespace codec
