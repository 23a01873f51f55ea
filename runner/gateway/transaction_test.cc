// SPDX-License-Identifier: Apache-2.0
#include "gateway/transaction.h"

#include <catch2/catch.hpp>
#include <deque>

#include "gateway/test_services.h"

namespace gateway {
namespace {

using codec::BodyFraming;

// A client's body: pieces, and then what the test says.
class FakeBody final : public BodyReader {
 public:
  explicit FakeBody(EventLoop& loop) : changed_(loop) {}

  Task<Result<Piece>> Read(Deadline deadline) override {
    if (pieces.empty() && waits && !cancelled_) co_await changed_.Within(deadline);
    if (cancelled_) co_return Error{Code::kIo, "cancelled"};
    if (!pieces.empty()) {
      piece_ = std::move(pieces.front());
      pieces.pop_front();
      co_return Piece{piece_, pieces.empty() && !waits && !failure.has_value()};
    }
    if (failure.has_value()) co_return *failure;
    co_return Piece{{}, true};
  }
  bool ready() const override { return !pieces.empty(); }
  const codec::HttpFields& trailers() const override { return trailers_; }
  void Cancel() override {
    cancelled_ = true;
    changed_.Set();
  }
  bool cancelled() const { return cancelled_; }

  std::deque<std::string> pieces;
  bool waits = false;            // Behind the pieces, until it is cancelled.
  std::optional<Error> failure;  // Behind the pieces.

 private:
  Signal changed_;
  codec::HttpFields trailers_;
  std::string piece_;
  bool cancelled_ = false;
};

// Takes an answer down.
class FakeAnswer final : public BodyWriter {
 public:
  Task<Status> Write(std::string_view bytes) override {
    body.append(bytes);
    return Ok();
  }
  Task<Status> Flush() override { return Ok(); }
  Task<Status> Finish(const codec::HttpFields&) override {
    finished = true;
    return Ok();
  }
  std::string body;
  bool finished = false;
};

// The client's side of message.h: a request made by the test, and what it is answered.
class FakeClient final : public ClientRequest {
 public:
  FakeClient(TestServices& services, const std::string& method, const std::string& lines = "")
      : body_(services.loop()) {
    const std::string host = RenderAuthority(services.authority(), 80);
    const std::string text = method + " /a HTTP/1.1\r\nHost: " + host + "\r\n" + lines + "\r\n";
    head_ = codec::ParseRequestHead(text).value();
    framing_ = codec::RequestFraming(head_).value();
  }

  const codec::RequestHead& head() const override { return head_; }
  BodyFraming framing() const override { return framing_; }
  BodyReader& body() override { return body_; }
  Task<Status> SendInterim(int status, const codec::HttpFields&) override {
    interim.push_back(status);
    return Ok();
  }
  Task<Status> SendHead(int status, std::string_view, const codec::HttpFields& fields,
                        const BodyFraming& framing) override {
    CHECK(answer_status == 0);  // Once.
    answer_status = status;
    answer_fields = fields;
    answer_framing = framing;
    return Ok();
  }
  BodyWriter& answer() override { return answer_; }
  void Abort() override { aborted = true; }
  void CloseAfter() override {}
  void WhenGone(std::function<void()> call) override { gone = std::move(call); }
  bool is_http2() const override { return false; }

  FakeBody& fake_body() { return body_; }
  const FakeAnswer& fake_answer() const { return answer_; }
  // A whole answer with this status.
  bool Answered(int status) const {
    return answer_status == status && answer_.finished && !aborted;
  }

  std::vector<int> interim;
  int answer_status = 0;
  codec::HttpFields answer_fields;
  BodyFraming answer_framing;
  bool aborted = false;
  std::function<void()> gone;

 private:
  codec::RequestHead head_;
  BodyFraming framing_;
  FakeBody body_;
  FakeAnswer answer_;
};

// Transactions of one client's connection to the origin.
class Bench {
 public:
  TestServices& services() { return services_; }
  EventLoop& loop() { return services_.loop(); }
  Origin& origin() { return services_.origin(); }

  Task<void> Run(FakeClient& client) {
    Transaction transaction(services_.get(), services_.owner(), context_, upstream_, client);
    co_await transaction.Run();
    CHECK(client.gone == nullptr);  // It does not outlive the transaction.
  }
  // One request, with a server that does as it is told.
  void RunWith(FakeClient& client, Task<void> server) {
    SpawnPeer(loop(), std::move(server));
    RunUntilDone(loop(), Run(client));
    // The server has seen how it ended.
    RunUntilDone(loop(), Pause(loop(), milliseconds(5)));
  }

  // Answers one request with `text` and closes; what arrived is in `arrived`.
  Task<void> AnswerOnce(std::string text) {
    std::unique_ptr<Stream> stream = co_await origin().Accept();
    arrived = co_await ReadTo(*stream, "\r\n\r\n");
    recorded_before_arrival = !services_.Records().empty();
    co_await stream->Write(text);
  }
  // Answers with `text` at once and reads until the gateway ends the connection.
  Task<void> AnswerAndListen(std::string text) {
    std::unique_ptr<Stream> stream = co_await origin().Accept();
    arrived = co_await ReadTo(*stream, "\r\n\r\n");
    co_await stream->Write(text);
    arrived += co_await ReadToEnd(*stream);
    ended = true;
  }
  // Answers one request and hangs up when the second one arrives.
  Task<void> AnswerThenHangUp(std::string text) {
    std::unique_ptr<Stream> stream = co_await origin().Accept();
    std::string first = co_await ReadTo(*stream, "\r\n\r\n");
    co_await stream->Write(text);
    arrived = co_await ReadTo(*stream, "\r\n\r\n");
  }

  std::string arrived;
  bool recorded_before_arrival = false;
  bool ended = false;

 private:
  TestServices services_{OpenEndpoint(policy::Protocol::kRest)};
  std::unique_ptr<LivePolicy::Lease> lease_ = services_.policy().Take();
  policy::Route route_ =
      lease_->compiled().FindRoute(lease_->compiled().MatchCaller(services_.owner().caller),
                                   kOriginHost, services_.origin().port());
  std::string file_ = "policy.yml";
  Credentials credentials_{{}};
  RequestContext context_{
      *lease_, route_, file_, credentials_, services_.owner().caller, services_.authority(),
      "http"};
  Upstream upstream_{services_.get(), services_.destination()};
};

// Admits everything, and counts how answers ended.
class CountingGuard final : public RequestGuard {
 public:
  size_t BodyBytesWanted(const OutgoingRequest&) const override { return wanted; }
  Admission Admit(const Authority&, OutgoingRequest&) override {
    return {std::nullopt, std::make_unique<Counter>(*this)};
  }
  size_t wanted = 0;
  size_t sent = 0;
  int heads = 0;
  int complete = 0;
  int cut = 0;

 private:
  struct Counter final : ResponseObserver {
    explicit Counter(CountingGuard& guard) : counts(guard) {}
    void OnSent(size_t bytes) override { counts.sent += bytes; }
    void OnHead(const codec::ResponseHead&) override { ++counts.heads; }
    void OnBody(std::string_view) override {}
    void OnEnd(bool complete) override { ++(complete ? counts.complete : counts.cut); }
    CountingGuard& counts;
  };
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_CASE("An allowed request is recorded, then sent, and its answer passed back") {
  Bench bench;
  FakeClient client(bench.services(), "GET");
  bench.RunWith(client, bench.AnswerOnce(kOk));
  CHECK(client.Answered(200));
  CHECK(client.fake_answer().body == "ok");
  CHECK(bench.arrived.starts_with("GET /a HTTP/1.1\r\nHost: " + std::string(kOriginHost)));
  CHECK(bench.recorded_before_arrival);
}

TEST_CASE("Interim answers are passed on, but 100, which the gateway gives itself") {
  Bench bench;
  FakeClient client(bench.services(), "GET");
  const std::string hint = "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n";
  bench.RunWith(client, bench.AnswerOnce("HTTP/1.1 100 Continue\r\n\r\n" + hint + hint + kOk));
  CHECK(client.interim == std::vector<int>{103, 103});
  CHECK(client.Answered(200));
}

TEST_CASE("A server that never comes to its answer, or switches unasked, is a bad gateway") {
  Bench bench;
  FakeClient client(bench.services(), "GET");
  std::string text;
  for (int i = 0; i <= kInterimAnswersMax; ++i) text += "HTTP/1.1 103 Early Hints\r\n\r\n";
  SECTION("interim without end") {}
  SECTION("101") { text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"; }
  SECTION("no head") { text = "SSH-2.0\r\n\r\n"; }
  SECTION("nothing") { text = ""; }
  SECTION("two lengths") { text = "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx"; }
  bench.RunWith(client, bench.AnswerOnce(text + (text.starts_with("HTTP/1.1 103") ? kOk : "")));
  CHECK(client.Answered(502));
  const bool answered = !text.empty();
  CHECK((client.fake_answer().body.find("malformed_response") != std::string::npos) == answered);
  CHECK(bench.services().Records().find("upstream failed") != std::string::npos);
}

TEST_CASE("An answer to HEAD has a length and no body") {
  Bench bench;
  FakeClient client(bench.services(), "HEAD");
  bench.RunWith(client, bench.AnswerOnce("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"));
  CHECK(client.Answered(200));
  CHECK(client.answer_framing.kind == BodyFraming::kNone);
  REQUIRE(codec::FindField(client.answer_fields, "content-length") != nullptr);
  CHECK(codec::FindField(client.answer_fields, "content-length")->value == "1000");
  CHECK(client.fake_answer().body.empty());
}

TEST_CASE("An answer that ends early is cut, not ended") {
  Bench bench;
  FakeClient client(bench.services(), "GET");
  bench.RunWith(client, bench.AnswerOnce("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"));
  CHECK(client.answer_status == 200);
  CHECK(client.fake_answer().body == "ok");
  CHECK_FALSE(client.fake_answer().finished);
  CHECK(client.aborted);
}

TEST_CASE("A client that gives up ends the request at the server, which is told to the guard") {
  Bench bench;
  CountingGuard guard;
  bench.services().get().guard = &guard;
  FakeClient client(bench.services(), "GET");
  SpawnPeer(bench.loop(), bench.AnswerAndListen(""));  // Silence.
  SpawnPeer(bench.loop(), [](Bench& at, FakeClient& gone) -> Task<void> {
    while (at.arrived.empty()) co_await Pause(at.loop(), milliseconds(1));
    gone.gone();
  }(bench, client));
  RunUntilDone(bench.loop(), bench.Run(client));
  RunUntilDone(bench.loop(), Pause(bench.loop(), milliseconds(5)));
  CHECK(bench.ended);
  CHECK(guard.heads == 0);
  CHECK(guard.cut == 1);
}

TEST_CASE("A guard is told once how an answer ended, and nothing of what no server was sent") {
  CountingGuard guard;
  Bench bench;
  bench.services().get().guard = &guard;
  FakeClient client(bench.services(), "GET");
  SECTION("whole") {
    bench.RunWith(client, bench.AnswerOnce(kOk));
    CHECK(guard.complete == 1);
    CHECK(guard.cut == 0);
  }
  SECTION("cut off") {
    bench.RunWith(client, bench.AnswerOnce("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"));
    CHECK(guard.complete == 0);
    CHECK(guard.cut == 1);
  }
  SECTION("never begun") {
    bench.RunWith(client, bench.AnswerOnce(""));
    CHECK(guard.heads + guard.complete == 0);
    CHECK(guard.cut == 1);
  }
  SECTION("never sent") {
    bench.origin().Close();
    RunUntilDone(bench.loop(), bench.Run(client));
    CHECK(guard.heads + guard.complete + guard.cut == 0);
  }
}

TEST_CASE("A guard is told how much of a body is sent, whether it is read whole or not") {
  CountingGuard guard;
  Bench bench;
  bench.services().get().guard = &guard;
  for (size_t wanted : {size_t{0}, size_t{100}}) {
    guard.wanted = wanted;
    guard.sent = 0;
    FakeClient client(bench.services(), "POST", "Content-Length: 10\r\n");
    client.fake_body().pieces = {"12345", "67890"};
    bench.RunWith(client, bench.AnswerOnce(kOk));
    CHECK(client.Answered(200));
    CHECK(guard.sent == 10);
  }
}

TEST_CASE("A body of another length than its head said is cut off, and not a byte too many sent") {
  Bench bench;
  FakeClient client(bench.services(), "POST", "Content-Length: 4\r\n");
  SECTION("longer") { client.fake_body().pieces = {"1234", "GET /evil HTTP/1.1\r\n\r\n"}; }
  SECTION("longer at once") { client.fake_body().pieces = {"1234GET /evil HTTP/1.1\r\n\r\n"}; }
  SECTION("shorter") { client.fake_body().pieces = {"12"}; }
  bench.RunWith(client, bench.AnswerAndListen(""));
  CHECK(bench.ended);
  CHECK(bench.arrived.find("evil") == std::string::npos);
  CHECK(client.aborted);
  CHECK(client.answer_status == 0);
  CHECK(bench.services().Records().find("than its head declared") != std::string::npos);
}

TEST_CASE("Half a request is cut off at the server") {
  Bench bench;
  FakeClient client(bench.services(), "POST", "Transfer-Encoding: chunked\r\n");
  client.fake_body().pieces = {"half"};
  SECTION("the client is gone") {
    client.fake_body().failure = Error{Code::kIo, "connection closed"};
    bench.RunWith(client, bench.AnswerAndListen(""));
    CHECK(client.aborted);
    CHECK(client.answer_status == 0);
  }
  SECTION("the rest is no body") {
    client.fake_body().failure = Error{Code::kInvalid, "a chunk without a size"};
    bench.RunWith(client, bench.AnswerAndListen(""));
    CHECK(client.answer_status != 200);
    CHECK(bench.services().Records().find("a chunk without a size") != std::string::npos);
  }
  CHECK(bench.ended);
  CHECK(bench.arrived.find("\r\n0\r\n") == std::string::npos);  // The last chunk.
}

TEST_CASE("A server may answer before it has all of the body, which then ends") {
  Bench bench;
  FakeClient client(bench.services(), "POST", "Content-Length: 1000000\r\n");
  client.fake_body().pieces = {"the beginning"};
  client.fake_body().waits = true;
  bench.RunWith(client,
                bench.AnswerAndListen("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"));
  CHECK(client.Answered(413));
  CHECK(client.fake_body().cancelled());
  CHECK(bench.ended);
}

TEST_CASE("An answer passes while a body that was read whole is still on its way") {
  CountingGuard guard;
  guard.wanted = size_t{64} << 20;
  Bench bench;
  bench.services().get().guard = &guard;
  const std::string body(size_t{32} << 20, 'x');  // More than any socket holds.
  FakeClient client(bench.services(), "POST",
                    "Content-Length: " + std::to_string(body.size()) + "\r\n");
  client.fake_body().pieces = {body};
  bench.RunWith(client, [](Bench& at, FakeClient& awaits) -> Task<void> {
    std::unique_ptr<Stream> stream = co_await at.origin().Accept();
    co_await ReadTo(*stream, "\r\n\r\n");
    co_await stream->Write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    while (awaits.answer_status == 0) co_await Pause(at.loop(), milliseconds(1));
  }(bench, client));
  CHECK(client.Answered(413));
}

TEST_CASE("A request on a kept connection that was just closed is sent again if it may be") {
  Bench bench;
  FakeClient first(bench.services(), "GET");
  SpawnPeer(bench.loop(), bench.AnswerThenHangUp(kOk));
  RunUntilDone(bench.loop(), bench.Run(first));
  REQUIRE(first.Answered(200));
  SECTION("GET") {
    FakeClient second(bench.services(), "GET");
    SpawnPeer(bench.loop(), [](Bench& at) -> Task<void> {
      while (at.arrived.empty()) co_await Pause(at.loop(), milliseconds(1));
      co_return co_await at.AnswerOnce(kOk);
    }(bench));
    RunUntilDone(bench.loop(), bench.Run(second));
    CHECK(second.Answered(200));
    CHECK(bench.origin().accepted() == 2);
  }
  SECTION("POST, whose effect may have come about") {
    FakeClient second(bench.services(), "POST");
    RunUntilDone(bench.loop(), bench.Run(second));
    CHECK(second.Answered(502));
    CHECK(bench.origin().accepted() == 1);
  }
}

TEST_CASE("A server that cannot be reached is a bad gateway") {
  Bench bench;
  bench.origin().Close();
  FakeClient client(bench.services(), "GET");
  RunUntilDone(bench.loop(), bench.Run(client));
  CHECK(client.Answered(502));
}

}  // namespace
}  // namespace gateway
