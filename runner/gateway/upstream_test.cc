// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream.h"

#include <catch2/catch.hpp>

#include "gateway/http/limits.h"
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
  std::vector<record::Notice> notices;
  HostAllowances allowances(64 << 10,
                            [&](const record::Notice& notice) { notices.push_back(notice); });
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

// Returns `size` bytes; less if the peer finishes or breaks before.
Task<std::string> ReadBytes(Stream& stream, size_t size) {
  while (stream.buffered().size() < size) {
    Result<size_t> read = co_await stream.Fill(Late());
    if (!read.ok() || read.value() == 0) break;
  }
  std::string bytes(stream.buffered().substr(0, size));
  stream.Consume(bytes.size());
  co_return bytes;
}

// A server of HTTP/2 that takes no more requests on a connection once it has one: it sends
// SETTINGS_MAX_CONCURRENT_STREAMS = 0 before its answer, which has an end if `ends`.
Task<void> TakeOne(std::unique_ptr<Stream> stream, bool ends, int& open) {
  constexpr size_t kPrefaceBytes = 24;
  constexpr size_t kFrameHeadBytes = 9;
  ++open;
  (void)co_await stream->Write(std::string("\0\0\0\4\0\0\0\0\0", kFrameHeadBytes));
  (void)co_await ReadBytes(*stream, kPrefaceBytes);
  for (;;) {
    const std::string head = co_await ReadBytes(*stream, kFrameHeadBytes);
    if (head.size() < kFrameHeadBytes) break;
    const auto size =
        static_cast<unsigned char>(head[1]) * 256U + static_cast<unsigned char>(head[2]);
    (void)co_await ReadBytes(*stream, size);
    if (head[3] != 1) continue;  // HEADERS
    std::string answer("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\0\0\0\1\1", 19);
    answer += ends ? '\5' : '\4';
    answer += head.substr(5) + "\x88";  // ":status: 200"
    (void)co_await stream->Write(answer);
  }
  --open;
}

Task<void> TakeOneEach(TestServices& services, int connections, bool ends, int& open) {
  while (connections-- > 0) {
    std::unique_ptr<Stream> stream = co_await services.origin().Accept();
    if (stream) SpawnPeer(services.loop(), TakeOne(std::move(stream), ends, open));
  }
}

Task<void> AwaitEqual(EventLoop& loop, const int& value, int wanted) {
  for (int i = 0; i < 5000 && value != wanted; ++i) co_await Pause(loop, milliseconds(1));
}

TEST_CASE("A connection of HTTP/2 that takes no request and carries none is closed") {
  int open = 0;
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  SpawnPeer(services.loop(), TakeOneEach(services, 5, true, open));
  Upstream upstream(services.get(), services.destination());
  upstream.OfferHttp2();
  for (int i = 0; i < 5; ++i) CHECK(GetNow(services, upstream, {}).value() == 200);
  RunUntilDone(services.loop(), AwaitEqual(services.loop(), open, 1));
  CHECK(open == 1);
  CHECK(services.origin().accepted() == 5);
  RunUntilDone(services.loop(), upstream.Close());
  RunUntilDone(services.loop(), AwaitEqual(services.loop(), open, 0));
}

Task<bool> Begin(Upstream& upstream, std::vector<std::unique_ptr<ServerRequest>>& held) {
  Opened opened = co_await upstream.Open({});
  if (!opened.ok()) co_return false;
  held.push_back(std::move(opened).value());
  const codec::HttpFields fields = {{"Host", "a"}};
  Status sent = co_await held.back()->SendHead("GET", "/", fields, codec::BodyFraming());
  REQUIRE(sent.ok());
  Result<codec::ResponseHead> head = co_await held.back()->ReadHead(Late());
  co_return head.ok();
}

TEST_CASE("The connections of one client to a server of HTTP/2 are bounded") {
  int open = 0;
  TestServices services(OpenEndpoint(policy::Protocol::kRest));
  SpawnPeer(services.loop(), TakeOneEach(services, kHttp2ConnectionsMax, false, open));
  Upstream upstream(services.get(), services.destination());
  upstream.OfferHttp2();
  std::vector<std::unique_ptr<ServerRequest>> held;
  while (held.size() < kHttp2ConnectionsMax) {
    REQUIRE(RunUntilDone(services.loop(), Begin(upstream, held)));
  }
  CHECK_FALSE(RunUntilDone(services.loop(), Begin(upstream, held)));
  CHECK(held.size() == kHttp2ConnectionsMax);
  held.clear();
  RunUntilDone(services.loop(), upstream.Close());
  RunUntilDone(services.loop(), AwaitEqual(services.loop(), open, 0));
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
