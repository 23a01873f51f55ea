// SPDX-License-Identifier: Apache-2.0
#include "gateway/exchange.h"

#include <openssl/crypto.h>

#include "gateway/head_reader.h"
#include "gateway/refusal.h"
#include "gateway/relay.h"

namespace gateway {
namespace {

// 103 Early Hints and the like, before the answer proper.
constexpr int kInterimAnswersMax = 16;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool IsEventStream(const codec::ResponseHead& head) {
  constexpr std::string_view kType = "text/event-stream";
  const codec::HttpField* type = codec::FindField(head.fields, "content-type");
  return type != nullptr &&
         codec::EqualIgnoringCase(std::string_view(type->value).substr(0, kType.size()), kType);
}

bool ServerKeepsAlive(const codec::ResponseHead& head, const codec::BodyFraming& framing) {
  if (framing.kind == codec::BodyFraming::kUntilClose) return false;
  if (codec::FieldHasToken(head.fields, "connection", "close")) return false;
  return head.minor_version == 1 || codec::FieldHasToken(head.fields, "connection", "keep-alive");
}

// May be sent a second time when a kept connection turns out to be closed (RFC 9110, 9.2.2).
bool MayRepeat(const RequestVerdict& verdict) {
  bool safe = verdict.method == "GET" || verdict.method == "HEAD" || verdict.method == "OPTIONS";
  return safe && verdict.framing.kind == codec::BodyFraming::kNone;
}

// The answer's head as the client gets it, and how its body goes out.
struct AnswerPlan {
  codec::HttpFields fields;
  BodyPlan body;
  bool keep_alive = false;
};

AnswerPlan PlanAnswer(const RequestVerdict& verdict, const codec::ResponseHead& head,
                      const codec::BodyFraming& framing) {
  AnswerPlan plan;
  plan.fields = codec::EndToEndFields(head.fields);
  plan.body.framing = framing;
  plan.body.idle = kBodyIdleTimeout;
  plan.keep_alive = verdict.keep_alive;
  switch (framing.kind) {
    case codec::BodyFraming::kNone: {
      // The length of a body that HEAD or a 304 leaves out.
      const codec::HttpField* length = codec::FindField(head.fields, "content-length");
      if (length != nullptr && head.status != 204) plan.fields.push_back(*length);
      break;
    }
    case codec::BodyFraming::kLength:
      plan.fields.push_back({"Content-Length", std::to_string(framing.length)});
      break;
    case codec::BodyFraming::kChunked:
      plan.body.rechunk = verdict.client_speaks_1_1;
      if (plan.body.rechunk) plan.fields.push_back({"Transfer-Encoding", "chunked"});
      plan.keep_alive = plan.keep_alive && plan.body.rechunk;
      break;
    case codec::BodyFraming::kUntilClose:
      plan.body.idle = kUnframedBodyIdleTimeout;
      plan.keep_alive = false;
      break;
  }
  if (IsEventStream(head)) plan.body.idle = milliseconds{0};
  if (!plan.keep_alive) {
    plan.fields.push_back({"Connection", "close"});
  } else if (!verdict.client_speaks_1_1) {
    plan.fields.push_back({"Connection", "keep-alive"});
  }
  return plan;
}

}  // namespace

bool Exchange::RecordOwned(Event event) {
  event.binary = owner_.caller.binary;
  event.pid = owner_.pid;
  event.ancestors = owner_.caller.ancestors;
  return services_.Record(event);
}

Task<bool> Exchange::Refuse(RequestVerdict verdict) {
  if (!RecordOwned(std::move(verdict.event))) co_return false;
  if (!verdict.response.empty()) {
    Status written = co_await client_.Write(verdict.response);
    if (!written.ok()) co_return false;
  }
  co_await client_.Linger();
  co_return false;
}

// The request was allowed and recorded as such; this says that it led nowhere.
Task<bool> Exchange::Fail(std::string why) {
  Event event;
  event.outcome = Event::Outcome::kFailed;
  event.host = context_.authority.host;
  event.port = context_.authority.port;
  event.policy = context_.handling.policy;
  event.engine = "upstream";
  event.reason = why;
  event.message = "upstream failed: " + why;
  RequestVerdict verdict;
  verdict.event = std::move(event);
  verdict.response = RenderRefusal(
      NewRefusal(502, "upstream_unreachable", RenderAuthority(context_.authority, 0) + ": " + why));
  upstream_.Abort();
  co_return co_await Refuse(std::move(verdict));
}

Task<Done> Exchange::RunAll() {
  bool first = true;
  for (;;) {
    HeadBounds bounds{kRequestHeadBytesMax,
                      Deadline::After(first ? kHeadTimeout : kKeepAliveTimeout)};
    HeadText text = co_await ReadHead(client_, bounds);
    bool nothing_sent = text.kind == HeadText::kFailed && client_.buffered().empty();
    if (text.kind == HeadText::kEnd || nothing_sent) {
      client_.FinishWriting();
      co_return Done{};
    }
    if (text.kind != HeadText::kHead) {
      co_await Refuse(JudgeMalformed(context_, text.why));
      co_return Done{};
    }
    if (IsHttp2Preface(text.text)) {
      RequestVerdict verdict = JudgeMalformed(context_, "HTTP/2 is not supported here");
      verdict.response =
          RenderRefusal(NewRefusal(403, "unsupported_l7_protocol", verdict.event.reason));
      co_await Refuse(std::move(verdict));
      co_return Done{};
    }
    Result<codec::RequestHead> head = codec::ParseRequestHead(text.text);
    if (!head.ok()) {
      co_await Refuse(JudgeMalformed(context_, head.error().what));
      co_return Done{};
    }
    bool more = co_await Run(std::move(head).value());
    if (!more) co_return Done{};
    first = false;
  }
}

Task<bool> Exchange::Run(codec::RequestHead head) {
  RequestVerdict verdict = JudgeRequest(context_, head);
  if (verdict.kind != RequestVerdict::kPass) co_return co_await Refuse(std::move(verdict));
  if (!RecordOwned(verdict.event)) co_return false;
  co_return co_await Transact(std::move(verdict));
}

Task<bool> Exchange::Transact(RequestVerdict verdict) {
  std::string head = codec::RenderRequestHead(verdict.method, verdict.target, verdict.fields);
  bool more = co_await Converse(verdict, head);
  // It may hold credentials.
  OPENSSL_cleanse(head.data(), head.size());
  OPENSSL_cleanse(verdict.target.data(), verdict.target.size());
  for (codec::HttpField& field : verdict.fields) {
    OPENSSL_cleanse(field.value.data(), field.value.size());
  }
  co_return more;
}

Task<Status> Exchange::Connect() {
  if (context_.scheme == "https") co_return co_await upstream_.ConnectTls();
  co_return co_await upstream_.Connect();
}

Task<Status> Exchange::ConnectAndSend(std::string_view head) {
  Status connected = co_await Connect();
  if (!connected.ok()) co_return connected;
  Status written = co_await upstream_.stream().Write(head);
  co_return written;
}

Task<Done> Exchange::PumpRequest(codec::BodyFraming framing, BodyOutcome& outcome, Signal& done) {
  BodyPlan plan;
  plan.framing = framing;
  plan.rechunk = framing.kind == codec::BodyFraming::kChunked;
  plan.idle = kBodyIdleTimeout;
  outcome = co_await PumpBody(client_, upstream_.stream(), plan);
  // Half a request must not look like a whole one; and nobody is left to read the answer.
  bool incomplete =
      outcome.kind == BodyOutcome::kSourceFailed || outcome.kind == BodyOutcome::kMalformed;
  if (incomplete) upstream_.Abort();
  done.Set();
  co_return Done{};
}

// Ends a pump that may still run: it uses both streams and this request's frame. A server may
// answer early (413), or not at all; the rest of the body is not worth sending then.
Task<Done> Exchange::EndPump(Signal& done) {
  if (done.is_set()) co_return Done{};
  upstream_.Abort();
  bool ended = co_await done.Within(Deadline::After(kLingerTimeout));
  if (!ended) client_.AbortReading();
  co_await done.Within(Deadline::Never());
  co_return Done{};
}

Task<bool> Exchange::Converse(const RequestVerdict& verdict, std::string_view head) {
  Status sent = co_await ConnectAndSend(head);
  if (!sent.ok()) co_return co_await Fail(sent.error().what);
  if (verdict.expects_continue) {
    Status written = co_await client_.Write(kContinue);
    if (!written.ok()) co_return false;
  }
  Signal body_done(services_.loop);
  BodyOutcome body;
  bool has_body = verdict.framing.kind != codec::BodyFraming::kNone;
  if (has_body) services_.loop.Spawn(PumpRequest(verdict.framing, body, body_done));
  Answered answer = co_await ReadAnswer(verdict);
  if (!answer.ok && answer.silent && upstream_.used() && MayRepeat(verdict)) {
    upstream_.Drop();
    Status again = co_await ConnectAndSend(head);
    if (!again.ok()) co_return co_await Fail(again.error().what);
    answer = co_await ReadAnswer(verdict);
  }
  if (answer.ok && answer.head.status == 101) co_return co_await SwitchProtocols(answer.head);
  bool more = false;
  if (answer.ok) more = co_await SendAnswer(verdict, answer.head);
  if (has_body) {
    bool complete = body_done.is_set() && body.kind == BodyOutcome::kDone;
    more = more && complete;
    co_await EndPump(body_done);
    if (!answer.ok && body.kind == BodyOutcome::kMalformed) {
      co_return co_await Refuse(JudgeMalformed(context_, body.why));
    }
    if (!answer.ok && body.kind == BodyOutcome::kSourceFailed) co_return false;  // It hung up.
  }
  if (!answer.ok) co_return co_await Fail(answer.why);
  if (!more) co_await client_.Linger();
  co_return more;
}

Task<Exchange::Answered> Exchange::ReadAnswer(const RequestVerdict& verdict) {
  Answered answer;
  for (int interim = 0; interim < kInterimAnswersMax; ++interim) {
    HeadBounds bounds{kResponseHeadBytesMax, Deadline::After(kResponseHeadTimeout)};
    HeadText text = co_await ReadHead(upstream_.stream(), bounds);
    if (text.kind != HeadText::kHead) {
      answer.silent = interim == 0 && upstream_.stream().buffered().empty();
      answer.why = text.kind == HeadText::kEnd ? "connection closed without an answer" : text.why;
      co_return answer;
    }
    Result<codec::ResponseHead> head = codec::ParseResponseHead(text.text);
    if (!head.ok()) {
      answer.why = "malformed answer: " + head.error().what;
      co_return answer;
    }
    int status = head.value().status;
    if (status == 101 && !verdict.websocket) {
      answer.why = "the server switched protocols unasked";
      co_return answer;
    }
    if (status >= 200 || status == 101) {
      answer.ok = true;
      answer.head = std::move(head).value();
      co_return answer;
    }
    // "100 Continue" was said by us already.
    if (status == 100 || !verdict.client_speaks_1_1) continue;
    std::string passed = codec::RenderResponseHead(status, head.value().reason,
                                                   codec::EndToEndFields(head.value().fields));
    Status written = co_await client_.Write(passed);
    if (!written.ok()) {
      answer.why = written.error().what;
      co_return answer;
    }
  }
  answer.why = "too many interim answers";
  co_return answer;
}

Task<bool> Exchange::SendAnswer(const RequestVerdict& verdict, const codec::ResponseHead& head) {
  Result<codec::BodyFraming> framing = codec::ResponseFraming(head, verdict.method);
  if (!framing.ok()) co_return co_await Fail("malformed answer: " + framing.error().what);
  AnswerPlan plan = PlanAnswer(verdict, head, framing.value());
  std::string text = codec::RenderResponseHead(head.status, head.reason, plan.fields);
  Status written = co_await client_.Write(text);
  if (!written.ok()) {
    upstream_.Abort();
    co_return false;
  }
  BodyOutcome body = co_await PumpBody(upstream_.stream(), client_, plan.body);
  if (body.kind != BodyOutcome::kDone) {
    // Cut off, not ended: the client must see that something is missing.
    upstream_.Abort();
    client_.Abort();
    co_return false;
  }
  if (ServerKeepsAlive(head, framing.value())) {
    upstream_.MarkUsed();
  } else {
    upstream_.Abort();
  }
  co_return plan.keep_alive;
}

Task<bool> Exchange::SwitchProtocols(const codec::ResponseHead& head) {
  if (!codec::FieldHasToken(head.fields, "upgrade", "websocket")) {
    co_return co_await Fail("the server switched to another protocol than asked");
  }
  codec::HttpFields fields = codec::EndToEndFields(head.fields);
  fields.push_back({"Connection", "Upgrade"});
  fields.push_back({"Upgrade", "websocket"});
  std::string text = codec::RenderResponseHead(head.status, head.reason, fields);
  Status written = co_await client_.Write(text);
  if (written.ok()) co_await Relay(services_.loop, client_, upstream_.stream());
  co_return false;
}

}  // namespace gateway
