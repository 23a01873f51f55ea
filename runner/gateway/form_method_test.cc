// SPDX-License-Identifier: Apache-2.0
#include "gateway/form_method.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

codec::HttpFields Fields(const std::string& type) { return {{"Content-Type", type}}; }

// Whether the body passes in one piece, and in pieces of every size up to 40. They must agree.
bool Passes(const std::string& type, const std::string& body) {
  std::vector<bool> passed;
  for (size_t size : {body.size(), size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{40}}) {
    OutgoingRefusal refusal;
    refusal.reason = "refused";
    codec::HttpFields fields = type.empty() ? codec::HttpFields() : Fields(type);
    std::unique_ptr<StreamFilter> filter = NewFormMethodFilter(fields, refusal);
    std::string out;
    bool refused = false;
    for (size_t at = 0; at < body.size() && !refused; at += size) {
      std::string piece = body.substr(at, size);
      auto said = filter->Filter(piece, at + size >= body.size(), out);
      refused = said.has_value();
      if (refused) CHECK(said->reason == "refused");
    }
    // The last byte has not gone: no server has the whole body.
    if (refused) CHECK(out.size() < body.size());
    if (!refused) CHECK(out == body);
    passed.push_back(!refused);
  }
  CHECK(std::count(passed.begin(), passed.end(), passed[0]) == static_cast<long>(passed.size()));
  return passed[0];
}

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
  std::string out;
  CHECK(NewFormMethodFilter(two, {})->Filter("a", false, out).has_value());
}

TEST_CASE("A form that is compressed does not pass") {
  std::string out;
  codec::HttpFields fields = {{"Content-Type", kPairs}, {"Content-Encoding", "gzip"}};
  CHECK(NewFormMethodFilter(fields, {})->Filter("a=b", false, out).has_value());
  fields[1].value = "Identity";
  CHECK_FALSE(NewFormMethodFilter(fields, {})->Filter("a=b", false, out).has_value());
}

TEST_CASE("What is no form is not looked at") {
  CHECK(IsForm(Fields("")));
  CHECK(IsForm(Fields("x")));
  CHECK(IsForm({}));
  CHECK(IsForm(Fields(kPairs)));
  CHECK(IsForm(Fields("Multipart/Form-Data; boundary=x")));
  CHECK_FALSE(IsForm(Fields("application/json")));
  CHECK_FALSE(IsForm(Fields("application/x-git-receive-pack-request")));
  CHECK(NamesMethod("_method"));
  CHECK(NamesMethod("_HttpMethod"));
  CHECK_FALSE(NamesMethod("method"));
  CHECK_FALSE(NamesMethod(""));
}

}  // namespace
}  // namespace gateway
