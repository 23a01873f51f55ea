// SPDX-License-Identifier: Apache-2.0
// Tests that need no network; the rest is in tests/forge.
#include "net/http_client.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace net {
namespace {

// A directory of the test's own, gone with it.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/net_test.XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() {
    ::unlink((path_ + "/ca.pem").c_str());
    ::rmdir(path_.c_str());
  }
  std::string File(std::string_view bytes) const {
    REQUIRE(sys::WriteFile(path_ + "/ca.pem", bytes).ok());
    return path_ + "/ca.pem";
  }

 private:
  std::string path_;
};

HttpClient Client(const Folder& folder) {
  HttpClientOptions options;
  options.ca_file = folder.File("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
  Result<HttpClient> client = HttpClient::Create(options);
  REQUIRE(client.ok());
  return std::move(client).value();
}

TEST_CASE("HttpClient::Create wants certificates: a missing file and one without any are errors") {
  Folder folder;
  HttpClientOptions options;
  options.ca_file = "/nonexistent/ca.pem";
  CHECK(HttpClient::Create(options).error().code == Code::kNotFound);
  options.ca_file = folder.File("no certificate here\n");
  CHECK(HttpClient::Create(options).error().code == Code::kSetup);
}

TEST_CASE("HttpClient::Send refuses what is not http or https before anything is sent") {
  Folder folder;
  HttpClient client = Client(folder);
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "127.0.0.1/", "",
                          "http://user:word@127.0.0.1/", "http://127.0.0.1/\r\nx: y", "http://"}) {
    CAPTURE(url);
    HttpRequest request;
    request.url = url;
    Result<HttpResponse> answer = client.Send(request, Deadline::After(std::chrono::seconds(1)));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code == Code::kInvalid);
    CHECK_FALSE(client.reached());
  }
}

TEST_CASE("HttpClient::Send refuses a header or token of two lines, without showing the token") {
  Folder folder;
  HttpClient client = Client(folder);
  HttpRequest request;
  request.url = "http://127.0.0.1:1/";
  request.headers = {{"x-a", "b\r\nx-c: d"}};
  CHECK(client.Send(request, Deadline::Never()).error().code == Code::kInvalid);
  request.headers.clear();
  Secret token("hush\nx: y");
  request.bearer = &token;
  Result<HttpResponse> answer = client.Send(request, Deadline::Never());
  CHECK(answer.error().code == Code::kSetup);
  CHECK(answer.error().what.find("hush") == std::string::npos);
  request.bearer = nullptr;
  request.secret_headers = {{"x-key", &token}};
  answer = client.Send(request, Deadline::Never());
  CHECK(answer.error().code == Code::kSetup);
  CHECK(answer.error().what.find("hush") == std::string::npos);
}

TEST_CASE("HttpClient::Send says that a passed deadline is temporary and sends nothing") {
  Folder folder;
  HttpClient client = Client(folder);
  HttpRequest request;
  request.url = "http://127.0.0.1:1/";
  Result<HttpResponse> answer = client.Send(request, Deadline::After(std::chrono::seconds(0)));
  CHECK(answer.error().code == Code::kTemporary);
  CHECK_FALSE(client.reached());
}

TEST_CASE("HttpClient::Send says that a name does not resolve, as often as it is asked") {
  Folder folder;
  HttpClientOptions options;
  options.ca_file = folder.File("-----BEGIN CERTIFICATE-----\n");
  HttpClient client = HttpClient::Create(std::move(options)).value();
  HttpRequest request;
  request.url =
      "http://" + std::string(64, 'a') + "/";  // Too long for a label: no server is asked.
  for (int i = 0; i < 3; ++i) {
    Result<HttpResponse> response = client.Send(request, Deadline::After(std::chrono::seconds(20)));
    REQUIRE_FALSE(response.ok());
    CHECK(response.error().code == Code::kTemporary);
    CHECK(response.error().what.find("resolve") != std::string::npos);
  }
}

TEST_CASE("HttpClient::Send judges the address that a name leads to before it sends anything") {
  Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  REQUIRE(::bind(listening.get(), reinterpret_cast<sockaddr*>(&place), size) == 0);
  REQUIRE(::listen(listening.get(), 4) == 0);
  REQUIRE(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&place), &size) == 0);
  Folder folder;
  HttpClient client = Client(folder);
  HttpRequest request;
  request.url = "http://a.name.localhost:" + std::to_string(ntohs(place.sin_port)) + "/";
  std::vector<std::string> judged;
  request.judge_address = [&](const std::string& address) -> Status {
    judged.push_back(address);
    return Error{Code::kRefused, "not there"};
  };
  Result<HttpResponse> refused = client.Send(request, Deadline::Never());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kRefused);
  CHECK_FALSE(client.reached());
  Fd first(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  CHECK(::recv(first.get(), &size, 1, 0) == 0);
  Fd second;
  request.judge_address = [&](const std::string& address) -> Status {
    judged.push_back(address);
    second = Fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return sys::WriteAll(second.get(), "HTTP/1.1 204 No Content\r\n\r\n");
  };
  CHECK(client.Send(request, Deadline::Never()).value().status == 204);
  CHECK(judged == std::vector<std::string>{"127.0.0.1", "127.0.0.1"});
}

TEST_CASE("HttpResponse::Header finds by lower-case name and gives nothing for the rest") {
  HttpResponse response;
  response.headers = {{"link", "a"}, {"retry-after", "3"}};
  CHECK(response.Header("retry-after") == "3");
  CHECK(response.Header("x-none").empty());
}

}  // namespace
}  // namespace net
