// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/named_method.h"

#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "gateway/inspect/limits.h"

namespace gateway {
namespace {

codec::HttpFields Fields(const std::string& type) { return {{"Content-Type", type}}; }

constexpr char kJson[] = "application/json";

// Returns whether the filters for these fields let the body pass, in pieces of `size` bytes.
bool PassesIn(const codec::HttpFields& fields, const std::string& body, size_t size) {
  std::string gone;
  bool refused = false;
  auto filters = NewMethodFilters(fields, {});
  for (size_t at = 0; at < body.size() && !refused; at += size) {
    std::string piece = body.substr(at, size);
    for (auto& filter : filters) {
      std::string out;
      refused = refused || filter->Filter(piece, at + size >= body.size(), out).has_value();
      if (!refused) CHECK(out == piece);
    }
    if (!refused) gone += piece;
  }
  // The last byte has not gone: no server has the whole body.
  CHECK(refused == (gone.size() < body.size()));
  return !refused;
}

// The same in one piece and in pieces of several sizes: they must agree.
bool Passes(const codec::HttpFields& fields, const std::string& body) {
  bool whole = PassesIn(fields, body, std::max<size_t>(body.size(), 1));
  for (size_t size : {1, 2, 3, 7, 40}) CHECK(PassesIn(fields, body, size) == whole);
  return whole;
}

bool Passes(const std::string& type, const std::string& body) {
  return Passes(type.empty() ? codec::HttpFields() : Fields(type), body);
}

constexpr char kPairs[] = "application/x-www-form-urlencoded";

TEST_CASE("A form that names a method does not pass, however it is written") {
  for (const char* body : {"_method=delete",
                           "a=b&_method=DELETE",
                           "a=b;_method=put",
                           "_method=post",
                           "_method=%&x=y",
                           "%5Fmethod=delete",
                           "%5f%6d%65%74%68%6f%64=delete",
                           "_METHOD=delete",
                           "++_method=delete",
                           "%20%20_method=x",
                           ".method=delete",
                           "%5Bmethod=delete",
                           "a=b&_method",
                           "&&_method=x",
                           "a&_method=x",
                           "[_method]=x",
                           "%5b_method%5D=x",
                           "]_method]]=x",
                           "_method%00junk=x",
                           "a; _method=x",
                           "X-HTTP-Method-Override=DELETE",
                           "a=b&x-http-method=put",
                           "X%2DMethod-Override=x",
                           "[X-HTTP-Method-Override]=x"}) {
    INFO(body);
    CHECK_FALSE(Passes(kPairs, body));
    CHECK_FALSE(Passes("", body));
    CHECK_FALSE(Passes("Application/X-WWW-Form-Urlencoded; charset=utf-8", body));
  }
  for (const char* front : {"+", " ", ".", "[", "%20", "%5B", "%2e[+]"}) {
    std::string many;
    while (many.size() < 500) many += front;
    CHECK_FALSE(Passes(kPairs, many + "_method=delete"));
  }
  for (const char* body :
       {"", "a=b", "method=delete", "a=_method", "a=_method=delete", "a_method=x", "_methods=x",
        "my_method=x", "payment_method=x", "a[_method]=x", "%", "%5", "a=%26_method=x", "%5b",
        "method]=x", "x-http-method-overrides=x", "a=X-HTTP-Method-Override",
        "a=X-HTTP-Method-Override=x"}) {
    INFO(body);
    CHECK(Passes(kPairs, body));
  }
  CHECK(Passes(kPairs, std::string(5000, 'k') + "_method=delete"));
}

std::string Part(const std::string& fields, const std::string& value = "delete") {
  return "--b0\r\n" + fields + "\r\n\r\n" + value + "\r\n";
}

TEST_CASE("A part that names a method does not pass, wherever it stands") {
  const std::string type = "multipart/form-data; boundary=b0";
  const std::string disposition = "Content-Disposition: form-data; ";
  for (const char* name : {"name=\"_method\"",
                           "name=_method",
                           "NAME=\"_Method\"",
                           "name=\"\\_method\"",
                           "name*=utf-8''_method",
                           "name = \"_method\"",
                           "name=\"%5fmethod\"",
                           "name=\".method\"",
                           "filename=x; name=\"_method\"",
                           "name=\"[_method]\"",
                           "name=\"[method\"",
                           "name*0=\"_met\"; name*1=\"hod\"",
                           "x=y\r\nContent-ID: _method",
                           "name=\"X-HTTP-Method-Override\"",
                           "name=x-http-method",
                           "Name = \"\\X-Method-Override\"",
                           "name=\"=?utf-8?B?X21ldGhvZA==?=\"",
                           "name=\"=?utf-8?Q?=5Fmethod?=\"",
                           "name==?utf-8?Q?=5Fmethod?=",
                           "NAME = \"\r\n =?utf-8?Q?=5Fmethod?=\"",
                           "name=\"_met=?utf-8?Q?hod?=\""}) {
    INFO(name);
    std::string part = Part(disposition + name);
    CHECK_FALSE(Passes(type, part + "--b0--\r\n"));
    CHECK_FALSE(Passes(type, Part(disposition + "name=\"a\"") + part + "--b0--\r\n"));
    CHECK_FALSE(Passes(type, "preamble" + part));
    CHECK_FALSE(Passes("multipart/related;boundary=\"b0\"", part));
  }
  CHECK_FALSE(Passes(type, "--b0\n" + disposition + "name=_method\n\ndelete\n--b0--\n"));
  CHECK_FALSE(Passes(type, "--b0\r\n" + disposition + "\r\n name=_method\r\n\r\nx\r\n--b0--\r\n"));
  CHECK_FALSE(Passes(type, "--b0\r\nX: y\r\n--b0\r\n" + disposition + "name=_method\r\n\r\nx"));
  // Readers differ on where a part ends: the content of a file counts, too.
  CHECK_FALSE(Passes(type, Part(disposition + "name=\"a\"", "name=\"_method\"") + "--b0--\r\n"));
  CHECK_FALSE(Passes("multipart/form-data", Part(disposition + "name=\"_method\"")));
  CHECK(Passes(type, Part(disposition + "name=\"a\"", "def a_method\n  x = _method_y(z)\n")));
  CHECK(Passes(type, Part(disposition + "name=\"a\"; filename*=utf-8''b.txt", "x")));
  CHECK(Passes(type, Part(disposition + "name=\"payment_method\"; filename=\"my_method.rb\"")));
  CHECK(Passes(type, Part(disposition + "name=\"x-http-method-overrides\"")));
  CHECK(Passes(type, Part(disposition + "name=\"a\"; filename=\"=?utf-8?Q?=5Fmethod?=\"")));
  // Text that mentions them, as code does.
  for (const char* text :
       {"curl -H 'X-HTTP-Method-Override: DELETE'", "h = \"X-HTTP-Method-Override\"",
        "UPDATE t SET name=?, a=? WHERE name == ?", "name == \"x\" ? a : b", "a=?",
        "=?utf-8?B?eA==?="}) {
    INFO(text);
    CHECK(Passes(type, Part(disposition + "name=\"a\"", text) + "--b0--\r\n"));
  }
  CHECK(Passes(type,
               Part(disposition + "name=\"method\"") + Part(disposition + "name=b") + "--b0--"));
  CHECK(Passes(type, Part(disposition + "name=\"f\"; filename=\"x\"", std::string(100000, '-'))));
}

TEST_CASE("JSON in which a key names a method does not pass") {
  for (const char* body : {R"({"_method":"delete"})",
                           R"( {"a":{"b":[1,"}"]},"_method" : "put"})",
                           R"({"\u005fmethod":"x"})",
                           R"({"\u005Fm\u0065thod":"x"})",
                           R"({"_method":["delete"]})",
                           R"({"_method":null})",
                           R"({"a":"\"","_method":"delete"})",
                           R"({"a":"\\","_METHOD":"delete"})",
                           "\xef\xbb\xbf{\"_method\":\"delete\"}",
                           R"({"a":{"_method":"delete"}})",
                           R"([{"_method":"delete"}])",
                           R"({} {"_method":"delete"})",
                           R"({"_method"/**/:"delete"})",
                           R"({"_method" /* ": */ :"delete"})",
                           "{\"_method\"// x\n:\"delete\"}",
                           "{\"_method\" //\r x\n :\"delete\"}",
                           "{\"_method\"\f:\"delete\"}",
                           R"({/*"*/"_method":"delete"})",
                           R"({/*\u*/"_method":"delete"})",
                           R"({/*\*/"_method":"delete"})"}) {
    INFO(body);
    CHECK_FALSE(Passes(kJson, body));
    CHECK_FALSE(Passes("application/vnd.api+JSON; charset=utf-8", body));
  }
  // As many blanks as there are bytes of a key that are kept, and more.
  for (size_t blanks : {1, 23, 24, 25, 5000}) {
    CHECK_FALSE(Passes(kJson, "{\"_method\"" + std::string(blanks, '\n') + ":\"delete\"}"));
    CHECK(Passes(kJson, "[\"_method\"" + std::string(blanks, '\n') + ",\"delete\"]"));
  }
  // Text that mentions it is not a key, whatever the agent quotes.
  for (const char* body :
       {"", "[]", "1", R"("_method")", R"({"a":"_method"})", R"({"a":["_method"],"b":1})",
        R"({"method":"delete"})", R"({"a":"\"_method\":\"delete\""})",
        R"({"messages":[{"content":"{\"_method\":\"delete\"}"}],"_methods":"x"})", R"({})",
        R"({"headers":{"X-HTTP-Method-Override":"DELETE"},"a":"X-HTTP-Method"})",
        R"({"a":"_method" })", R"({"a":"\u12","b":"_method\u005f"})", R"({"_method\u0":"x"})",
        R"({"a":"\"_method\"/**/:1 // \"_method\" /"})", "_method=delete", "{", R"({"_meth)"}) {
    INFO(body);
    CHECK(Passes(kJson, body));
  }
  CHECK(Passes(kJson, "{\"" + std::string(9000, 'a') + "_method\":\"delete\"}"));
  // In another Unicode, which Express would decode, it cannot be read here.
  for (const char* charset :
       {"utf-16", "utf-7", "\"utf-32\"", "utf-8, utf-16", "UTF-16LE", "utf-8; charset=utf-16"}) {
    CHECK_FALSE(Passes(std::string(kJson) + "; charset=" + charset, "{}"));
  }
  for (const char* charset : {"utf-8", "UTF-8", "\"utf-8\"", "utf-8; a=b"}) {
    CHECK(Passes(std::string(kJson) + "; charset=" + charset, "{}"));
  }
  // If a type mentions both, some servers read the one and some the other.
  const std::string both = std::string(kPairs) + "; a=/json";
  CHECK_FALSE(Passes(both, R"({"_method":"delete"})"));
  CHECK_FALSE(Passes(both, "_method=delete"));
}

std::string Compress(const std::string& text, int window_bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_CASE("A compressed body is judged by what it holds") {
  constexpr int kGzip = 31;
  constexpr int kZlib = 15;
  constexpr int kNoHeader = -15;
  auto fields = [](const char* type, const char* coding) {
    return codec::HttpFields{{"Content-Type", type}, {"Content-Encoding", coding}};
  };
  std::string json = R"({"a":")" + std::string(50000, 'x') + R"(","_method":"delete"})";
  std::string fine = R"({"a":[{"b":"_method"}]})";
  for (const char* coding : {"gzip", "X-Gzip"}) {
    CHECK_FALSE(Passes(fields(kJson, coding), Compress(json, kGzip)));
    CHECK(Passes(fields(kJson, coding), Compress(fine, kGzip)));
    CHECK_FALSE(Passes(fields(kPairs, coding), Compress("a=b&_method=put", kGzip)));
    CHECK(Passes(fields(kPairs, coding), Compress("a=b", kGzip)));
  }
  CHECK_FALSE(Passes(fields(kJson, "deflate"), Compress(json, kZlib)));
  CHECK(Passes(fields(kJson, "Identity"), fine));
  SECTION("and refused where readers may differ, or where it cannot be read") {
    CHECK_FALSE(Passes(fields(kJson, "deflate"), Compress(fine, kNoHeader)));
    CHECK_FALSE(Passes(fields(kJson, "gzip"), fine));
    CHECK_FALSE(Passes(fields(kJson, "gzip"), Compress(fine, kGzip) + Compress(json, kGzip)));
    CHECK_FALSE(Passes(fields(kJson, "br"), fine));
    CHECK_FALSE(Passes(fields(kJson, "gzip, gzip"), Compress(fine, kGzip)));
    CHECK_FALSE(Passes(fields(kPairs, "zstd"), "a=b"));
  }
  SECTION("and refused when it is a bomb") {
    std::string zeros(kInflatedBytesFree * 4, ' ');
    CHECK_FALSE(PassesIn(fields(kJson, "gzip"), Compress(zeros, kGzip), 5000));
    CHECK(PassesIn(fields(kJson, "gzip"), Compress(zeros.substr(0, kInflatedBytesFree), kGzip),
                   5000));
  }
}

TEST_CASE("A form whose keys are not spelled as in ASCII does not pass") {
  const std::string parts = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--\r\n";
  for (const char* charset : {"ibm037", "utf-16", "utf-16le", "UTF-7", "utf-8, utf-7", " utf-8"}) {
    INFO(charset);
    CHECK_FALSE(Passes(std::string(kPairs) + "; charset=" + charset, "a=b"));
    CHECK_FALSE(Passes(std::string("multipart/form-data; boundary=b; charset=") + charset, parts));
  }
  for (const char* charset : {"utf-8", "UTF-8", "\"utf-8\"", "us-ascii", "ISO-8859-1",
                              "windows-1252", "utf-8; a=b", "\"utf-8\"; a=b"}) {
    INFO(charset);
    CHECK(Passes(std::string(kPairs) + "; charset=" + charset, "a=b"));
    CHECK(Passes(std::string("multipart/form-data; boundary=b; charset=") + charset, parts));
  }
  CHECK(Passes("text/plain; charset=utf-16", "a=b"));
}

TEST_CASE("What cannot name a method is not looked at") {
  CHECK(NewMethodFilters({}, {}).size() == 1);
  CHECK(NewMethodFilters(Fields("x"), {}).size() == 1);
  CHECK(NewMethodFilters(Fields(kPairs), {}).size() == 1);
  CHECK(NewMethodFilters(Fields("Multipart/Form-Data; boundary=x"), {}).size() == 1);
  CHECK(NewMethodFilters(Fields("application/octet-stream"), {}).empty());
  CHECK(NewMethodFilters(Fields("application/x-git-receive-pack-request"), {}).empty());
  CHECK(NamesMethod("_method"));
  CHECK(NamesMethod("_HttpMethod"));
  CHECK(NamesMethod("X-HTTP-Method-Override"));
  CHECK_FALSE(NamesMethod("X-HTTP-Method-Overrides"));
  CHECK_FALSE(NamesMethod("method"));
  CHECK_FALSE(NamesMethod(""));
}

}  // namespace
}  // namespace gateway
