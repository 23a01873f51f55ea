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

// What the filters for these fields say of the body in pieces of so many bytes: the methods they
// asked about, each followed by a blank, of which the judge allows PUT. "?" is one that nobody can
// tell, and the last one if it is refused, as is any but PUT.
std::string AskedIn(const codec::HttpFields& fields, const std::string& body, size_t size) {
  std::string asked;
  auto judge = [&](std::string_view method) -> std::optional<OutgoingRefusal> {
    asked += method.empty() ? "?" : std::string(method);
    asked += ' ';
    if (method == "PUT") return std::nullopt;
    return OutgoingRefusal{};
  };
  std::vector<std::unique_ptr<StreamFilter>> filters = NewMethodFilters(fields, judge);
  std::string gone;
  bool refused = false;
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
  CHECK(refused == (!asked.empty() && !asked.ends_with("PUT ")));
  return asked;
}

// The same in one piece and in pieces of every size up to 40: they must agree.
std::string Asked(const codec::HttpFields& fields, const std::string& body) {
  std::string whole = AskedIn(fields, body, std::max<size_t>(body.size(), 1));
  for (size_t size : {1, 2, 3, 7, 40}) CHECK(AskedIn(fields, body, size) == whole);
  return whole;
}

std::string Asked(const std::string& type, const std::string& body) {
  return Asked(type.empty() ? codec::HttpFields() : Fields(type), body);
}

bool Passes(const std::string& type, const std::string& body) { return Asked(type, body).empty(); }

constexpr char kPairs[] = "application/x-www-form-urlencoded";

TEST_CASE("A form that names a method does not pass, however it is written") {
  for (const char* body :
       {"_method=delete", "a=b&_method=DELETE", "a=b;_method=put", "%5Fmethod=delete",
        "%5f%6d%65%74%68%6f%64=delete", "_METHOD=delete", "++_method=delete", "%20%20_method=x",
        ".method=delete", "%5Bmethod=delete", "a=b&_method", "&&_method=x", "a&_method=x",
        "[_method]=x", "%5b_method%5D=x", "]_method]]=x", "_method%00junk=x", "a; _method=x"}) {
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
  for (const char* body : {"", "a=b", "method=delete", "a=_method", "a=_method=delete",
                           "a_method=x", "_methods=x", "my_method=x", "a=%26_method=x",
                           "payment_method=x", "a[_method]=x", "%", "%5", "%5b", "method]=x"}) {
    INFO(body);
    CHECK(Passes(kPairs, body));
  }
  CHECK(Passes(kPairs, std::string(5000, 'k') + "_method=delete"));
}

std::string Part(const std::string& fields, const std::string& value = "delete") {
  return "--b0\r\n" + fields + "\r\n\r\n" + value + "\r\n";
}

TEST_CASE("A part that names a method does not pass, and what a file holds is its own") {
  const std::string type = "multipart/form-data; boundary=b0";
  const std::string disposition = "Content-Disposition: form-data; ";
  for (const char* name :
       {"name=\"_method\"", "name=_method", "NAME=\"_Method\"", "name=\"\\_method\"",
        "name*=utf-8''_method", "name = \"_method\"", "name=\"%5fmethod\"", "name=\".method\"",
        "filename=x; name=\"_method\"", "name=\"[_method]\"", "name=\"[method\"",
        "name*0=\"_met\"; name*1=\"hod\"", "x=y\r\nContent-ID: _method"}) {
    INFO(name);
    std::string part = Part(disposition + name);
    CHECK_FALSE(Passes(type, part + "--b0--\r\n"));
    CHECK_FALSE(Passes(type, Part(disposition + "name=\"a\"") + part + "--b0--\r\n"));
    CHECK_FALSE(Passes(type, "preamble" + part));
    CHECK_FALSE(Passes("multipart/related;boundary=\"b0\"", part));
  }
  CHECK_FALSE(Passes(type, "--b0\n" + disposition + "name=_method\n\ndelete\n--b0--\n"));
  CHECK_FALSE(Passes(type, "--b0\r\n" + disposition + "\r\n name=_method\r\n\r\nx\r\n--b0--\r\n"));
  CHECK_FALSE(Passes(type, Part("X: " + std::string(20000, 'x'))));
  CHECK_FALSE(Passes(type, "--b0\r\nX: y\r\n--b0\r\n" + disposition + "name=_method\r\n\r\nx"));
  CHECK(Passes(type, Part(disposition + "name=\"a\"", "name=\"_method\"\r\n\r\n") + "--b0--\r\n"));
  CHECK(Passes(type, Part(disposition + "name=\"payment_method\"; filename=\"my_method.rb\"")));
  CHECK(Passes(type,
               Part(disposition + "name=\"method\"") + Part(disposition + "name=b") + "--b0--"));
  CHECK(Passes(type, Part(disposition + "name=\"f\"; filename=\"x\"", std::string(100000, '-'))));
}

TEST_CASE("A form whose parts nobody can tell apart does not pass") {
  const std::string part = Part("Content-Disposition: form-data; name=\"a\"");
  for (const char* type :
       {"multipart/form-data",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=a; boundary=b0",
        "multipart/form-data; boundary=\"b0", "multipart/form-data; boundary=b\x01",
        "multipart/form-data; boundary=\"b0,x\"", "multipart/form-data; boundary =b0; boundary=x",
        "multipart/form-data; boundary*=utf-8''b0", "multipart/form-data; boundary=\"b0\"x",
        "multipart/form-data; boundary=b0 x", "multipart/form-data; boundary='b0'"}) {
    INFO(type);
    CHECK_FALSE(Passes(type, part));
  }
  codec::HttpFields two = {{"Content-Type", "multipart/form-data; boundary=b0"},
                           {"Content_Type", kPairs}};
  CHECK(Asked(two, "a") == "? ");
}

TEST_CASE("The method that is judged is the one that is named") {
  for (auto [body, asked] : {std::pair{"_method=delete", "DELETE "},
                             {"a=b&_method=Put&c=d", "PUT "},
                             {"_method=put&_method=patch", "PUT PATCH "},
                             {"_method=%64elete", "DELETE "},
                             {"_method=", "? "},
                             {"_method", "? "},
                             {"_method=a+b", "? "},
                             {"_method=put%20", "? "},
                             {"_method=put;x=y", "PUT "},
                             {"_method=put%00", "? "},
                             {"_method=putputputputputput", "? "}}) {
    INFO(body);
    CHECK(Asked(kPairs, body) == asked);
  }
  CHECK(Asked(kPairs, "_method=" + std::string(9000, 'p') + "&a=b") == "? ");
  const std::string type = "multipart/form-data; boundary=b0";
  const std::string method = "Content-Disposition: form-data; name=\"_method\"";
  CHECK(Asked(type, Part(method) + "--b0--\r\n") == "DELETE ");
  CHECK(Asked(type, Part(method, "put") + Part(method, "patch") + "--b0--") == "PUT PATCH ");
  CHECK(Asked(type, "--b0\n" + method + "\n\nput\n--b0--\n") == "PUT ");
  CHECK(Asked(type, Part(method, "put\r\n")) == "? ");
  CHECK(Asked(type, Part(method, "")) == "? ");
  CHECK(Asked(type, Part(method, std::string(9000, 'p'))) == "? ");
  CHECK(Asked(type, "--b0\r\n" + method + "\r\n\r\nput") == "? ");
  // Whether the value is to be decoded, or under which of two names, readers do not agree.
  CHECK(Asked(type, Part(method + "\r\nContent-Transfer-Encoding: base64", "cHV0")) == "? ");
  CHECK(Asked(type, Part("X: y\r\n" + method, "put")) == "? ");
  CHECK(Asked(type, Part(method + "; name*=utf-8''a", "put")) == "? ");
}

TEST_CASE("JSON that names a method in its outermost object is judged by it") {
  for (auto [body, asked] : {std::pair{R"({"_method":"delete"})", "DELETE "},
                             {R"( {"a":{"b":[1,"}"]},"_method" : "put"})", "PUT "},
                             {R"({"\u005fmethod":"\u0064elete"})", "DELETE "},
                             {R"({"\u005Fm\u0065thod":"x"})", "X "},
                             {R"({"_method":["delete"]})", "? "},
                             {R"({"_method":null})", "? "},
                             {R"({"_method":1})", "? "},
                             {R"({"_method":""})", "? "},
                             {R"({"_method":"del\\ete"})", "? "},
                             {R"({"_method":"d\u00e9lete"})", "? "},
                             {R"({"_method":"put","_method":"delete"})", "PUT DELETE "},
                             {R"({"a":"\"","_method":"delete"})", "DELETE "},
                             {R"({"a":"\\","_METHOD":"delete"})", "DELETE "},
                             {"\xef\xbb\xbf{\"_method\":\"delete\"}", "DELETE "}}) {
    INFO(body);
    CHECK(Asked(kJson, body) == asked);
    CHECK(Asked("application/vnd.api+JSON; charset=utf-8", body) == asked);
  }
  for (const char* body :
       {"", "[]", "1", R"("_method")", R"({"a":"_method"})", R"({"a":{"_method":"delete"}})",
        R"([{"_method":"delete"}])", R"({"method":"delete"})", R"({"a":"\"_method\":\"delete\""})",
        R"({"messages":[{"content":"{\"_method\":\"delete\"}"}],"_methods":"x"})", R"({})",
        "_method=delete", R"({} {"_method":"delete"})", "{", R"({"_meth)"}) {
    INFO(body);
    CHECK(Passes(kJson, body));
  }
  CHECK(Passes(kJson, "{\"" + std::string(9000, '_') + "method\":\"delete\"}"));
  CHECK(Asked(kJson, "{\"_method\":\"" + std::string(9000, 'p') + "\"}") == "? ");
  // In another Unicode, which Express would decode, it cannot be read here.
  for (const char* charset :
       {"utf-16", "utf-7", "\"utf-32\"", "utf-8, utf-16", "UTF-16LE", "utf-8; charset=utf-16"}) {
    CHECK(Asked(std::string(kJson) + "; charset=" + charset, "{}") == "? ");
  }
  for (const char* charset : {"utf-8", "UTF-8", "\"utf-8\"", "utf-8; a=b"}) {
    CHECK(Passes(std::string(kJson) + "; charset=" + charset, "{}"));
  }
  // Where a type mentions both, some servers read the one and some the other.
  const std::string both = std::string(kPairs) + "; a=/json";
  CHECK(Asked(both, R"({"_method":"delete"})") == "DELETE ");
  CHECK(Asked(both, "_method=delete") == "DELETE ");
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
  std::string fine = R"({"a":[{"_method":"delete"}]})";
  for (const char* coding : {"gzip", "X-Gzip"}) {
    CHECK(Asked(fields(kJson, coding), Compress(json, kGzip)) == "DELETE ");
    CHECK(Asked(fields(kJson, coding), Compress(fine, kGzip)).empty());
    CHECK(Asked(fields(kPairs, coding), Compress("a=b&_method=put", kGzip)) == "PUT ");
    CHECK(Asked(fields(kPairs, coding), Compress("a=b", kGzip)).empty());
  }
  CHECK(Asked(fields(kJson, "deflate"), Compress(json, kZlib)) == "DELETE ");
  CHECK(Asked(fields(kJson, "Identity"), fine).empty());
  SECTION("and refused where readers may differ, or where it cannot be read") {
    CHECK(Asked(fields(kJson, "deflate"), Compress(fine, kNoHeader)) == "? ");
    CHECK(Asked(fields(kJson, "gzip"), fine) == "? ");
    CHECK(Asked(fields(kJson, "gzip"), Compress(fine, kGzip) + Compress(json, kGzip)) == "? ");
    CHECK(Asked(fields(kJson, "br"), fine) == "? ");
    CHECK(Asked(fields(kJson, "gzip, gzip"), Compress(fine, kGzip)) == "? ");
    CHECK(Asked(fields(kPairs, "zstd"), "a=b") == "? ");
  }
  SECTION("and refused when it is a bomb") {
    std::string zeros(kInflatedBytesFree * 4, ' ');
    CHECK(AskedIn(fields(kJson, "gzip"), Compress(zeros, kGzip), 5000) == "? ");
    CHECK(AskedIn(fields(kJson, "gzip"), Compress(zeros.substr(0, kInflatedBytesFree), kGzip), 5000)
              .empty());
  }
}

TEST_CASE("What cannot name a method is not looked at") {
  CHECK(NewMethodFilters({}, nullptr).size() == 1);
  CHECK(NewMethodFilters(Fields("x"), nullptr).size() == 1);
  CHECK(NewMethodFilters(Fields(kPairs), nullptr).size() == 1);
  CHECK(NewMethodFilters(Fields("Multipart/Form-Data; boundary=x"), nullptr).size() == 1);
  CHECK(NewMethodFilters(Fields("application/octet-stream"), nullptr).empty());
  CHECK(NewMethodFilters(Fields("application/x-git-receive-pack-request"), nullptr).empty());
  CHECK(NamesMethod("_method"));
  CHECK(NamesMethod("_HttpMethod"));
  CHECK_FALSE(NamesMethod("method"));
  CHECK_FALSE(NamesMethod(""));
}

}  // namespace
}  // namespace gateway
