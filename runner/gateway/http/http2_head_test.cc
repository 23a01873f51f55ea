// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_head.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

using codec::BodyFraming;
using codec::HttpFields;

HttpFields Request(HttpFields more = {}) {
  HttpFields fields = {{":method", "GET"},
                       {":scheme", "https"},
                       {":authority", "api.example"},
                       {":path", "/v1?x=1"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

HttpFields With(std::string_view name, std::string value) {
  HttpFields fields = Request();
  for (codec::HttpField& field : fields) {
    if (field.name == name) field.value = value;
  }
  return fields;
}

HttpFields Without(std::string_view name) {
  HttpFields fields;
  for (const codec::HttpField& field : Request()) {
    if (field.name != name) fields.push_back(field);
  }
  return fields;
}

std::string WhyNot(const HttpFields& fields, bool end = true) {
  Result<Http2Request> request = ParseHttp2Request(fields, end, "https");
  return request.ok() ? "" : request.error().what;
}

TEST_CASE("A request of HTTP/2 reads as one of HTTP/1") {
  Result<Http2Request> request =
      ParseHttp2Request(Request({{"accept", "*/*"}, {"te", "trailers"}}), true, "https");
  REQUIRE(request.ok());
  const codec::RequestHead& head = request.value().head;
  CHECK(head.method == "GET");
  CHECK(head.target == "/v1?x=1");
  CHECK(head.minor_version == 1);
  CHECK(head.fields.front().name == "host");
  CHECK(head.fields.front().value == "api.example");
  CHECK(codec::FindField(head.fields, "accept")->value == "*/*");
  CHECK(request.value().framing.kind == BodyFraming::kNone);
}

TEST_CASE("Every request that passes is one that HTTP/1 reads the same") {
  for (const HttpFields& fields :
       {Request(), Request({{"cookie", "a=1"}, {"cookie", "b=2"}, {"x", ""}}),
        Request({{"content-length", "0"}}), With(":path", "/a%20b"), With(":method", "M-SEARCH")}) {
    Result<Http2Request> request = ParseHttp2Request(fields, true, "https");
    REQUIRE(request.ok());
    const codec::RequestHead& head = request.value().head;
    std::string text = codec::RenderRequestHead(head.method, head.target, head.fields);
    Result<codec::RequestHead> again = codec::ParseRequestHead(text);
    REQUIRE(again.ok());
    CHECK(again.value().method == head.method);
    CHECK(again.value().target == head.target);
    CHECK(again.value().fields.size() == head.fields.size());
  }
}

TEST_CASE("Pseudo-header fields are all there, once, known and in front") {
  CHECK(WhyNot(Request()).empty());
  for (const char* name : {":method", ":scheme", ":path"}) {
    CHECK(WhyNot(Without(name)) == std::string("missing ") + name);
  }
  CHECK(WhyNot(Request({{":path", "/other"}})) == "repeated pseudo-header field");
  CHECK(WhyNot(Request({{":status", "200"}})) == "unknown pseudo-header field");
  CHECK(WhyNot(Request({{":protocol", "websocket"}})) == "extended CONNECT");
  HttpFields late = {{"accept", "*/*"}};
  for (const codec::HttpField& field : Request()) late.push_back(field);
  CHECK_FALSE(WhyNot(late).empty());
  HttpFields behind = Without(":path");
  behind.push_back({"accept", "*/*"});
  behind.push_back({":path", "/"});
  CHECK_FALSE(WhyNot(behind).empty());
}

TEST_CASE("Host stands in for :authority and may not differ from it") {
  HttpFields host_alone = Without(":authority");
  host_alone.push_back({"host", "api.example"});
  CHECK(WhyNot(host_alone).empty());
  CHECK(WhyNot(Request({{"host", "API.example"}})).empty());
  CHECK(WhyNot(Request({{"host", "evil.example"}})) == "Host differs from :authority");
  HttpFields twice = host_alone;
  twice.push_back({"host", "evil.example"});
  CHECK(WhyNot(twice) == "Host differs from :authority");
  CHECK(WhyNot(Without(":authority")) == "missing or invalid :authority");
  CHECK(WhyNot(With(":authority", "")) == "missing or invalid :authority");
  CHECK_FALSE(WhyNot(With(":authority", "api.example\r\nx: y")).empty());
  CHECK_FALSE(WhyNot(With(":authority", "api.example evil")).empty());
}

TEST_CASE("Only the connection's scheme and no CONNECT pass") {
  CHECK(WhyNot(With(":scheme", "http")) == ":scheme differs from the connection's");
  CHECK(WhyNot(With(":method", "CONNECT")) == "CONNECT inside a tunnel");
  CHECK(WhyNot(With(":method", "GET /x HTTP/1.1\r\nx: y")) == "invalid :method");
  CHECK(WhyNot(With(":method", "")) == "invalid :method");
  CHECK(WhyNot(With(":method", std::string(65, 'A'))) == "invalid :method");
  for (const char* method : {"get", "Get", "pOST", "connect"}) {
    CHECK(WhyNot(With(":method", method)) == "invalid :method");
  }
  CHECK(WhyNot(With(":method", "GET")).empty());
}

TEST_CASE("A path is one word of a request line") {
  for (const char* path : {"", "v1", "http://evil.example/", "/ HTTP/1.1", "/a b", "/a\tb", "/a\rb",
                           "/a\nb", "/\x7f", "*"}) {
    CAPTURE(path);
    CHECK(WhyNot(With(":path", path)) == "invalid :path");
  }
  CHECK(WhyNot(With(":path", std::string("/a\0b", 4))) == "invalid :path");
  CHECK(WhyNot(With(":path", "/\xff")) == "invalid :path");
  HttpFields options = With(":path", "*");
  options[0].value = "OPTIONS";
  CHECK(WhyNot(options).empty());
}

TEST_CASE("Names are lower case and values hold no control characters") {
  CHECK(WhyNot(Request({{"x-a", "tab\tis fine"}})).empty());
  for (const char* name : {"X-A", "x a", "x:a", "x\r\na", "", "x\xc3"}) {
    CAPTURE(name);
    CHECK(WhyNot(Request({{name, "v"}})) == "invalid header name");
  }
  for (const char* value : {"a\r\nevil: 1", "a\nb", "a\rb", "a\x7f"}) {
    CAPTURE(value);
    CHECK(WhyNot(Request({{"x", value}})) == "control character in a header value");
  }
  CHECK(WhyNot(Request({{"x", std::string("a\0b", 3)}})) == "control character in a header value");
  CHECK(WhyNot(Request({{"x", " a"}})) == "whitespace around a header value");
  CHECK(WhyNot(Request({{"x", "a\t"}})) == "whitespace around a header value");
  CHECK(WhyNot(Request({{"x", "\xff"}})) == "header value is not UTF-8");
}

TEST_CASE("Fields of a connection have no place in HTTP/2") {
  for (const char* name : {"connection", "keep-alive", "proxy-connection", "transfer-encoding",
                           "upgrade", "http2-settings"}) {
    CAPTURE(name);
    CHECK(WhyNot(Request({{name, "chunked"}})) == "connection-specific header in HTTP/2");
  }
  CHECK(WhyNot(Request({{"te", "trailers"}})).empty());
  CHECK(WhyNot(Request({{"te", "gzip"}})) == "TE other than trailers");
}

TEST_CASE("Cookie crumbs become one field") {
  HttpFields fields =
      Request({{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}, {"cookie", "c=3"}});
  Result<Http2Request> request = ParseHttp2Request(fields, true, "https");
  REQUIRE(request.ok());
  CHECK(codec::FindField(request.value().head.fields, "cookie")->value == "a=1; b=2; c=3");
  Result<Http2Request> empty = ParseHttp2Request(
      Request({{"cookie", ""}, {"cookie", "a=1"}, {"cookie", ""}}), true, "https");
  CHECK(codec::FindField(empty.value().head.fields, "cookie")->value == "a=1");
  CHECK(request.value().head.fields.size() == 3);
}

TEST_CASE("A body comes as its length and its end say") {
  auto framing = [](HttpFields more, bool end, const char* method) {
    HttpFields fields = Request(std::move(more));
    fields[0].value = method;
    return ParseHttp2Request(fields, end, "https").value().framing;
  };
  CHECK(framing({}, true, "GET").kind == BodyFraming::kNone);
  CHECK(framing({}, true, "POST").kind == BodyFraming::kLength);
  CHECK(framing({}, true, "POST").length == 0);
  CHECK(framing({}, false, "GET").kind == BodyFraming::kUntilClose);
  CHECK(framing({{"content-length", "5"}}, false, "POST").length == 5);
  CHECK(WhyNot(Request({{"content-length", "5"}}), true) == "Content-Length without a body");
  CHECK(WhyNot(Request({{"content-length", "0"}}), true).empty());
  for (const char* length : {"-1", "+1", "1,1", "0x1", "", "9999999999999999999"}) {
    CAPTURE(length);
    CHECK(WhyNot(Request({{"content-length", length}}), false) == "invalid Content-Length");
  }
  CHECK(WhyNot(Request({{"content-length", "1"}, {"content-length", "2"}}), false) ==
        "conflicting Content-Length headers");
}

TEST_CASE("An answer has one status and no field of a connection") {
  CHECK(ParseHttp2Response({{":status", "200"}, {"x", "y"}}).value().status == 200);
  CHECK(ParseHttp2Response({{":status", "103"}}).value().status == 103);
  CHECK(ParseHttp2Response({{":status", "999"}}).value().status == 999);
  for (const HttpFields& fields :
       std::vector<HttpFields>{{},
                               {{"x", "y"}},
                               {{":status", "20"}},
                               {{":status", "0200"}},
                               {{":status", "099"}},
                               {{":status", "+20"}},
                               {{":status", "101"}},
                               {{":status", "200"}, {":status", "200"}},
                               {{":status", "200"}, {"connection", "x"}},
                               {{":status", "200"}, {"x", "a\r\nb: c"}}}) {
    CHECK_FALSE(ParseHttp2Response(fields).ok());
  }
}

TEST_CASE("The length of an answer is known, or its end is") {
  codec::ResponseHead sized =
      ParseHttp2Response({{":status", "200"}, {"content-length", "3"}}).value();
  codec::ResponseHead open = ParseHttp2Response({{":status", "200"}}).value();
  CHECK(Http2ResponseFraming(sized, false, "GET").value().length == 3);
  CHECK(Http2ResponseFraming(open, false, "GET").value().kind == BodyFraming::kChunked);
  CHECK(Http2ResponseFraming(open, true, "GET").value().kind == BodyFraming::kNone);
  CHECK(Http2ResponseFraming(sized, true, "HEAD").value().kind == BodyFraming::kNone);
  codec::ResponseHead torn =
      ParseHttp2Response({{":status", "200"}, {"content-length", "3"}, {"content-length", "4"}})
          .value();
  CHECK_FALSE(Http2ResponseFraming(torn, false, "GET").ok());
}

TEST_CASE("Trailers neither frame nor route") {
  CHECK(CheckHttp2Trailers({{"grpc-status", "0"}}).ok());
  for (const char* name : {":path", "host", "content-length", "transfer-encoding", "authorization",
                           "te", "Grpc-Status"}) {
    CAPTURE(name);
    CHECK_FALSE(CheckHttp2Trailers({{name, "1"}}).ok());
  }
  HttpFields rendered = RenderHttp2Trailers({{"Grpc-Status", "0"}, {"Content-Length", "5"}});
  REQUIRE(rendered.size() == 1);
  CHECK(rendered[0].name == "grpc-status");
}

TEST_CASE("What is sent has lower-case names, an authority and one length") {
  HttpFields fields = RenderHttp2Request("POST", "https", "/x",
                                         {{"Host", "h:8443"},
                                          {"Authorization", "Bearer s"},
                                          {"Connection", "keep-alive"},
                                          {"Transfer-Encoding", "chunked"},
                                          {"Content-Length", "9"},
                                          {"TE", "gzip"}},
                                         {BodyFraming::kLength, 5});
  REQUIRE(fields.size() == 6);
  CHECK(fields[0].value == "POST");
  CHECK(fields[1].value == "https");
  CHECK(fields[2].name == ":authority");
  CHECK(fields[2].value == "h:8443");
  CHECK(fields[3].value == "/x");
  CHECK(fields[4].name == "authorization");
  CHECK(fields[5].name == "content-length");
  CHECK(fields[5].value == "5");
}

TEST_CASE("The length of a body that is left out is told") {
  HttpFields fields = RenderHttp2Response(200, {{"Content-Length", "12"}}, {BodyFraming::kNone, 0});
  REQUIRE(fields.size() == 2);
  CHECK(fields[0].value == "200");
  CHECK(fields[1].value == "12");
  HttpFields streamed = RenderHttp2Response(200, {{"Server", "x"}}, {BodyFraming::kChunked, 0});
  CHECK(codec::FindField(streamed, "content-length") == nullptr);
}

TEST_CASE("No field that may hold a credential enters the table of HPACK") {
  for (const char* name : {"authorization", "cookie", "x-api-key", "private-token", ":path", "x"}) {
    CHECK_FALSE(MayIndexHttp2Field(name));
  }
  CHECK(MayIndexHttp2Field(":method"));
}

}  // namespace
}  // namespace gateway
