// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http1_client.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>

#include "base/sys.h"

namespace gateway {
namespace {

// Answers every request with its method and path.
class Echo final : public RequestHandler {
 public:
  Task<void> Handle(ClientRequest& request) override {
    ++requests;
    std::string body = request.head().method + " " + request.head().target;
    codec::BodyFraming framing{codec::BodyFraming::kLength, body.size()};
    Status sent = co_await request.SendHead(200, "OK", {}, framing);
    if (sent.ok()) sent = co_await request.answer().Write(body);
    if (sent.ok()) sent = co_await request.answer().Finish({});
    CHECK(sent.ok());
  }
  void OnMalformed(std::string_view why) override { malformed = why; }

  int requests = 0;
  std::string malformed;
};

Task<void> ServeAndStop(EventLoop& loop, Stream& stream, RequestHandler& handler) {
  co_await ServeHttp1(stream, handler);
  loop.Stop();
}

// Returns the answers on one connection, on which the client sends `bytes` and finishes.
std::string Serve(const std::string& bytes, Echo& echo) {
  EventLoop loop = EventLoop::Open().value();
  auto [ours, theirs] = sys::SocketPair().value();
  REQUIRE(sys::WriteAll(ours.get(), bytes).ok());
  REQUIRE(::shutdown(ours.get(), SHUT_WR) == 0);
  {
    Stream stream(loop, std::move(theirs));
    loop.Spawn(ServeAndStop(loop, stream, echo));
    loop.Run();
  }
  std::string all(65536, '\0');
  size_t size = 0;
  for (ssize_t n = 1; n > 0; size += static_cast<size_t>(std::max<ssize_t>(n, 0))) {
    n = ::recv(ours.get(), all.data() + size, all.size() - size, 0);
  }
  return all.substr(0, size);
}

TEST_CASE("Requests on one connection are answered one after another") {
  Echo echo;
  std::string answers =
      Serve("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", echo);
  CHECK(echo.requests == 2);
  CHECK(answers ==
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nGET /1HTTP/1.1 200 OK\r\n"
        "Content-Length: 6\r\n\r\nGET /2");
}

TEST_CASE("Keep-alive follows the client's version and wish") {
  struct Case {
    const char* line;
    int requests;
    const char* says;
  };
  for (const Case& each :
       {Case{" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", 1, "Connection: close\r\n"},
        Case{" HTTP/1.0\r\n", 1, "Connection: close\r\n"},
        Case{" HTTP/1.0\r\nConnection: keep-alive\r\n", 2, "Connection: keep-alive\r\n"}}) {
    Echo echo;
    std::string request = std::string("GET /") + each.line + "\r\n";
    std::string answers = Serve(request + request, echo);
    INFO(each.line);
    CHECK(echo.requests == each.requests);
    CHECK(answers.find(each.says) != std::string::npos);
  }
}

TEST_CASE("A body that was not read ends the connection behind the answer") {
  Echo echo;
  std::string answers = Serve(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
      echo);
  CHECK(echo.requests == 1);
  CHECK(answers.find("POST /") != std::string::npos);
}

TEST_CASE("What is no request is told to the handler, and gets no answer") {
  for (const char* bytes : {"GET /\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "\x16\x03\x01"}) {
    Echo echo;
    CHECK(Serve(bytes, echo).empty());
    CHECK(echo.requests == 0);
    CHECK_FALSE(echo.malformed.empty());
  }
}

}  // namespace
}  // namespace gateway
