// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "gateway/connection.h"
#include "gateway/test_services.h"

namespace gateway {
namespace {

using policy::Protocol;

constexpr const char* kOpened = "HTTP/1.1 200 Connection Established\r\n\r\n";

// One client that has asked for a tunnel to `authority`.
class Bench {
 public:
  explicit Bench(Protocol protocol, const char* only_host = "")
      : services_([&] {
          policy::Endpoint endpoint = OpenEndpoint(protocol);
          endpoint.host = only_host;
          return endpoint;
        }()) {}

  TestServices& services() { return services_; }
  EventLoop& loop() { return services_.loop(); }
  Origin& origin() { return services_.origin(); }
  TestLine& client() { return client_; }
  bool done() const { return done_; }

  void Connect() { SpawnPeer(loop(), Serve(RenderAuthority(services_.authority(), 0))); }
  void Connect(const std::string& authority) { SpawnPeer(loop(), Serve(authority)); }
  // Lets everything happen that can.
  void Settle() { RunUntilDone(loop(), Pause(loop(), milliseconds(10))); }
  // Until the client has got `text`, or longer than anything takes.
  std::string Hear(const std::string& text) {
    Deadline deadline = Late();
    while (heard_.find(text) == std::string::npos && !deadline.passed() && !done_) {
      RunUntilDone(loop(), Pause(loop(), milliseconds(1)));
      heard_ += client_.Arrived();
    }
    heard_ += client_.Arrived();
    return std::exchange(heard_, "");
  }
  // Until the tunnel is gone.
  void AwaitEnd() {
    for (Deadline deadline = Late(); !done_ && !deadline.passed();) Settle();
    CHECK(done_);
  }

 private:
  Task<void> Serve(std::string authority) {
    codec::RequestHead head;
    head.method = "CONNECT";
    head.target = std::move(authority);
    co_await ServeTunnel(services_.get(), services_.owner(), client_.stream(), head);
    client_.stream().Abort();
    done_ = true;
  }

  TestServices services_;
  TestLine client_{services_.loop()};
  std::string heard_;
  bool done_ = false;
};

TEST_CASE("A tunnel that the policy does not allow is refused before anything is dialled") {
  Bench bench(Protocol::kL4, "other.example");
  bench.Connect();
  CHECK(bench.Hear("not permitted").starts_with("HTTP/1.1 403 "));
  bench.client().Finish();
  bench.AwaitEnd();
  CHECK(RunUntilDone(bench.loop(), bench.origin().Accept(Soon())) == nullptr);
}

TEST_CASE("A target that is no authority is a bad request") {
  Bench bench(Protocol::kL4);
  bench.Connect("user@host.openshell.internal:1");
  CHECK(bench.Hear("\r\n\r\n").starts_with("HTTP/1.1 400 "));
  bench.client().Finish();
  bench.AwaitEnd();
}

TEST_CASE("A server that cannot be reached is told before the tunnel opens") {
  Bench bench(Protocol::kL4);
  bench.origin().Close();
  bench.Connect();
  CHECK(bench.Hear("upstream_unreachable").starts_with("HTTP/1.1 502 "));
  bench.client().Finish();
  bench.AwaitEnd();
}

TEST_CASE("A raw tunnel carries bytes both ways, and either side may finish first") {
  Bench bench(Protocol::kL4);
  bench.Connect();
  CHECK(bench.Hear(kOpened) == kOpened);
  std::unique_ptr<Stream> server = RunUntilDone(bench.loop(), bench.origin().Accept());
  const std::string hello("\1\2\0hello", 8);
  bench.client().Send(hello);
  CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "hello")) == hello);
  SECTION("the client") {
    bench.client().Finish();
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "more")).empty());  // Its end.
    CHECK(RunUntilDone(bench.loop(), server->Write("still here")).ok());
    CHECK(bench.Hear("still here") == "still here");
    CHECK_FALSE(bench.done());
  }
  SECTION("the server") {
    server->FinishWriting();
    bench.Settle();
    CHECK(bench.client().Ended());
    bench.client().Send("still here");
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "here")) == "still here");
    CHECK_FALSE(bench.done());
    bench.client().Finish();
  }
  server.reset();
  bench.AwaitEnd();
}

TEST_CASE("A peer that goes away ends a raw tunnel on its other side") {
  Bench bench(Protocol::kL4);
  bench.Connect();
  CHECK(bench.Hear(kOpened) == kOpened);
  std::unique_ptr<Stream> server = RunUntilDone(bench.loop(), bench.origin().Accept());
  bench.client().Send("\1 more than what is recognised as HTTP");
  CHECK_FALSE(RunUntilDone(bench.loop(), ReadTo(*server, "HTTP")).empty());
  SECTION("the server, with a reset") {
    server->ResetOnClose();
    server.reset();
    bench.AwaitEnd();
    CHECK(bench.client().Ended());
  }
  SECTION("the client") {
    bench.client().Close();
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "more")).empty());
    server.reset();
    bench.AwaitEnd();
  }
  SECTION("another policy is in force") {
    bench.services().policy().Replace(bench.services().NewPolicy(OpenEndpoint(Protocol::kL4)));
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "more")).empty());
    CHECK(bench.client().Ended());
    server.reset();
    bench.AwaitEnd();
  }
}

TEST_CASE("Where only the connection is judged, a request or TLS names no other host") {
  Bench bench(Protocol::kL4);
  bench.Connect();
  CHECK(bench.Hear(kOpened) == kOpened);
  std::unique_ptr<Stream> server = RunUntilDone(bench.loop(), bench.origin().Accept());
  const std::string other = "GET / HTTP/1.1\r\nHost: forbidden.example\r\n\r\n";
  SECTION("its own") {
    const std::string host = RenderAuthority(bench.services().authority(), 80);
    bench.client().Send("GET /a HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "\r\n\r\n")).starts_with("GET /a "));
    bench.client().Finish();
    server.reset();
    bench.AwaitEnd();
    return;
  }
  SECTION("another") { bench.client().Send(other); }
  SECTION("another, behind an empty line") { bench.client().Send("\r\n" + other); }
  SECTION("another, by a method of its own") { bench.client().Send("x" + other); }
  SECTION("another, slowly") {
    bench.client().Send(other.substr(0, 2));
    RunUntilDone(bench.loop(), Pause(bench.loop(), milliseconds(200)));
    bench.client().Send(other.substr(2));
  }
  SECTION("TLS of a version that is not known") {
    bench.client().Send(std::string("\x16\x03\x7f\0\x05\x02\0\0\x01\x01", 10));
  }
  bench.client().Finish();
  bench.AwaitEnd();
  server->FinishWriting();
  CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "forbidden")).empty());
}

TEST_CASE("Inside an inspected tunnel requests are judged, and nothing else passes") {
  Bench bench(Protocol::kRest);
  bench.Connect();
  CHECK(bench.Hear(kOpened) == kOpened);
  std::unique_ptr<Stream> server = RunUntilDone(bench.loop(), bench.origin().Accept());
  SECTION("a request") {
    const std::string host = RenderAuthority(bench.services().authority(), 80);
    bench.client().Send("GET /a HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    CHECK(RunUntilDone(bench.loop(), ReadTo(*server, "\r\n\r\n")).starts_with("GET /a "));
    CHECK(RunUntilDone(bench.loop(), server->Write("HTTP/1.1 204 No Content\r\n\r\n")).ok());
    CHECK(bench.Hear("\r\n\r\n").starts_with("HTTP/1.1 204 "));
  }
  SECTION("other bytes") {
    bench.client().Send(std::string("\0\1 of a protocol of its own", 26));
    CHECK(bench.Hear("unsupported_l7_protocol").starts_with("HTTP/1.1 403 "));
    // The endpoint that it would need.
    CHECK(bench.services().Records().find("\"protocol\":\"tcp\"") != std::string::npos);
  }
  SECTION("a server that greets first") {
    CHECK(RunUntilDone(bench.loop(), server->Write("220 ready\r\n")).ok());
    CHECK(bench.Hear("unsupported_l7_protocol").starts_with("HTTP/1.1 403 "));
  }
  SECTION("nothing") {}
  bench.client().Finish();
  bench.AwaitEnd();
}

}  // namespace
}  // namespace gateway
