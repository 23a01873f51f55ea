// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream.h"

#include <catch2/catch.hpp>

#include "gateway/test_services.h"

#if defined(__SANITIZE_ADDRESS__)
// The pool sweeps as long as the loop lives, which no test waits for.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:gateway::UpstreamPool::Keep"; }
#endif

namespace gateway {
namespace {

constexpr const char* kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

using Opened = Result<std::unique_ptr<ServerRequest>>;

// Answers `requests` of them on one connection, then closes it.
Task<void> AnswerSome(Origin& origin, int requests) {
  std::unique_ptr<Stream> stream = co_await origin.Accept();
  for (int each = 0; each < requests; ++each) {
    std::string head = co_await ReadTo(*stream, "\r\n\r\n");
    if (head.empty()) break;
    co_await stream->Write(kAnswer);
  }
}

// One GET to its end: its status, or why there is none.
Task<Result<int>> Get(ServerRequest& request) {
  const codec::HttpFields fields = {{"Host", "a"}};
  Status sent = co_await request.SendHead("GET", "/", fields, codec::BodyFraming());
  if (sent.ok()) sent = co_await request.body().Finish({});
  if (!sent.ok()) co_return std::move(sent).error();
  Result<codec::ResponseHead> head = co_await request.ReadHead(Late());
  if (!head.ok()) co_return std::move(head).error();
  for (bool end = false; !end;) {
    Result<BodyReader::Piece> piece = co_await request.answer().Read(Late());
    if (!piece.ok()) co_return std::move(piece).error();
    end = piece.value().end;
  }
  co_return head.value().status;
}

Task<Result<int>> OpenAndGet(Upstream& upstream, Upstream::Needs needs) {
  Opened opened = co_await upstream.Open(needs);
  if (!opened.ok()) co_return std::move(opened).error();
  co_return co_await Get(*opened.value());
}

Result<int> GetNow(TestServices& services, Upstream& upstream, Upstream::Needs needs) {
  return RunUntilDone(services.loop(), OpenAndGet(upstream, needs));
}

TEST_CASE("Requests of several clients share a connection, until its server closes it") {
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 3));
  for (int client = 0; client < 3; ++client) {
    Upstream upstream(services.get(), services.destination());
    CHECK(RunUntilDone(services.loop(), upstream.Reach()).ok());
    CHECK((upstream.dialled() != nullptr) == (client == 0));
    CHECK(GetNow(services, upstream, {}).value() == 200);
  }
  CHECK(services.origin().accepted() == 1);
  RunUntilDone(services.loop(), Pause(services.loop(), milliseconds(5)));  // The end arrives.
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 1));
  Upstream upstream(services.get(), services.destination());
  CHECK(GetNow(services, upstream, {}).value() == 200);
  CHECK(services.origin().accepted() == 2);
}

TEST_CASE("A connection that was wished for as fresh has carried nothing") {
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 2));
  Upstream upstream(services.get(), services.destination());
  CHECK(GetNow(services, upstream, {}).ok());
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 1));
  CHECK(GetNow(services, upstream, {.fresh = true}).ok());
  CHECK(services.origin().accepted() == 2);
}

TEST_CASE("Addresses are dialled in turn, and the error tells of the last") {
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  Destination destination = services.destination();
  // Also on loopback, where nothing listens.
  destination.addresses.insert(destination.addresses.begin(),
                               policy::ParseAddress("127.0.0.9").value());
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 1));
  Upstream upstream(services.get(), destination);
  CHECK(GetNow(services, upstream, {}).value() == 200);
  services.origin().Close();
  RunUntilDone(services.loop(), Pause(services.loop(), milliseconds(5)));  // The end arrives.
  Upstream late(services.get(), destination);
  Status reached = RunUntilDone(services.loop(), late.Reach());
  REQUIRE_FALSE(reached.ok());
  CHECK(reached.error().what.find("refused") != std::string::npos);
}

TEST_CASE("What Reach dialled is dialled anew when its server closed it before the first request") {
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  Upstream upstream(services.get(), services.destination());
  REQUIRE(RunUntilDone(services.loop(), upstream.Reach()).ok());
  RunUntilDone(services.loop(), AnswerSome(services.origin(), 0));
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 1));
  CHECK(GetNow(services, upstream, {}).value() == 200);
  CHECK(services.origin().accepted() == 2);
}

// A server of TLS, for a name, and what it answers with.
Task<Status> AnswerTls(TestServices& services, std::string name) {
  std::unique_ptr<Stream> stream = co_await services.origin().Accept();
  Result<SslOwner> ssl = services.get().authority.NewServer(name);
  Status shaken = co_await stream->StartTls(std::move(ssl).value(), Late());
  if (!shaken.ok()) co_return shaken;
  std::string head = co_await ReadTo(*stream, "\r\n\r\n");
  co_return co_await stream->Write(kAnswer);
}

Task<void> AnswerTlsAlone(TestServices& services, std::string name) {
  (void)co_await AnswerTls(services, std::move(name));
}

TEST_CASE("Inside TLS the server's certificate has to be the host's") {
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  Upstream upstream(services.get(), services.destination());
  SpawnPeer(services.loop(), AnswerTlsAlone(services, kOriginHost));
  CHECK(GetNow(services, upstream, {.tls = true}).value() == 200);
  SpawnPeer(services.loop(), AnswerTlsAlone(services, "other.example"));
  Result<int> refused = GetNow(services, upstream, {.tls = true, .fresh = true});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().what.find("mismatch") != std::string::npos);
}

TEST_CASE("A host has one allowance, whatever its connections") {
  std::vector<Notice> notices;
  HostAllowances allowances(64 << 10, [&](const Notice& notice) { notices.push_back(notice); });
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  services.get().allowances = &allowances;
  Upstream upstream(services.get(), services.destination());
  SpawnPeer(services.loop(), AnswerTlsAlone(services, kOriginHost));
  CHECK(GetNow(services, upstream, {.tls = true}).value() == 200);
  CHECK(notices.empty());
  // Less than a handshake is left.
  allowances.Of(kOriginHost)->Spend((64 << 10) - 2048);
  SpawnPeer(services.loop(), AnswerTlsAlone(services, kOriginHost));
  Result<int> cut = GetNow(services, upstream, {.tls = true, .fresh = true});
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().what ==
        "the run's limit of 64KiB to and from host.openshell.internal is used up (--host-bytes)");
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].type == "budget.host-bytes");
}

TEST_CASE("A raw stream is never one that carried a request") {
  TestServices services(OpenEndpoint(policy::Protocol::kL4));
  SpawnPeer(services.loop(), AnswerSome(services.origin(), 2));
  Upstream upstream(services.get(), services.destination());
  CHECK(GetNow(services, upstream, {}).ok());
  Result<std::unique_ptr<Stream>> raw = RunUntilDone(services.loop(), upstream.OpenStream(false));
  REQUIRE(raw.ok());
  RunUntilDone(services.loop(), AnswerSome(services.origin(), 0));
  CHECK(services.origin().accepted() == 2);
}

}  // namespace
}  // namespace gateway
