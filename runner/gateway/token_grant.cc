// SPDX-License-Identifier: Apache-2.0
#include "gateway/token_grant.h"

#include <time.h>

#include <algorithm>

#include "codec/wire/http_target.h"
#include "gateway/credential/google_credentials.h"
#include "gateway/credential/limits.h"
#include "gateway/limits.h"
#include "gateway/upstream.h"

namespace gateway {
namespace {

struct OwnResponse {
  int status = 0;
  int64_t date = 0;  // The server's clock, in seconds since 1970; 0 if it does not say.
  SecretString body;
};

// Clocks further apart than this are named: services tolerate 30 s and more.
constexpr int64_t kClockSkewMax = 25;

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7); 0 for anything else.
int64_t DateOf(const codec::HttpFields& fields) {
  const codec::HttpField* date = codec::FindField(fields, "date");
  tm time{};
  if (date == nullptr ||
      ::strptime(date->value.c_str(), "%a, %d %b %Y %H:%M:%S", &time) == nullptr) {
    return 0;
  }
  return int64_t{::timegm(&time)};
}

int64_t Now() { return int64_t{::time(nullptr)}; }

std::string HostOf(const std::string& url) {
  Result<codec::RequestUrl> parsed = codec::ParseRequestUrl(url);
  return parsed.ok() ? parsed.value().host : url;
}

// The gateway's own name in records.
constexpr std::string_view kOwnPolicy = "gateway";

[[nodiscard]] bool RecordOwn(Services& services, const codec::RequestUrl& url,
                             const std::string& method, const std::string& failure) {
  record::Event event;
  event.kind = record::Event::Kind::kRequest;
  event.outcome =
      failure.empty() ? record::Event::Outcome::kAllowed : record::Event::Outcome::kFailed;
  event.host = url.host;
  event.port = url.port;
  event.scheme = "https";
  event.method = method;
  event.path = services.credentials.Redact(url.target.substr(0, url.target.find('?')));
  event.policy = kOwnPolicy;
  event.engine = record::Engine::kCredentials;
  event.reason = failure;
  event.message = failure.empty() ? "token fetched by the gateway itself" : failure;
  return services.Record(event);
}

Task<Result<OwnResponse>> Exchange(Services& services, const codec::RequestUrl& url,
                                   const OwnRequest& request, Deadline deadline) {
  Authority authority{url.host, url.port};
  policy::Handling handling;
  handling.declared_host = true;  // The operator's credential file names it.
  DestinationVerdict verdict = co_await FindDestination(services, authority, handling);
  if (!verdict.allowed) {
    co_return Error{Code::kIo, verdict.failure.empty() ? verdict.label : verdict.failure};
  }
  Upstream upstream(services, std::move(verdict.destination));
  Result<std::unique_ptr<ServerRequest>> opened = co_await upstream.Open({true, true});
  if (!opened.ok()) co_return std::move(opened).error();
  ServerRequest& server = *opened.value();
  codec::SecretFields fields = {{"Host", RenderAuthority(authority, 443)}};
  fields.insert(fields.end(), request.fields.begin(), request.fields.end());
  bool has_body = !request.body.empty();
  codec::BodyFraming framing{has_body ? codec::BodyFraming::kLength : codec::BodyFraming::kNone,
                             request.body.size()};
  Status sent = co_await server.SendHead(request.method, url.target, fields, framing);
  if (sent.ok() && has_body) sent = co_await server.body().Write(request.body);
  if (sent.ok()) sent = co_await server.body().Finish({});
  if (!sent.ok()) co_return std::move(sent).error();
  OwnResponse answer;
  while (answer.status < 200) {
    Result<codec::ResponseHead> head = co_await server.ReadHead(deadline);
    if (!head.ok()) co_return std::move(head).error();
    answer.status = head.value().status;
    answer.date = DateOf(head.value().fields);
    if (answer.status == 101) co_return Error{Code::kInvalid, "it switched protocols"};
  }
  for (;;) {
    Result<BodyReader::Piece> piece = co_await server.answer().Read(deadline);
    if (!piece.ok()) co_return std::move(piece).error();
    answer.body.append(piece.value().bytes);
    if (piece.value().end) co_return answer;
    if (answer.body.size() > kTokenAnswerBytesMax) {
      co_return Error{Code::kInvalid, "its response is too long"};
    }
  }
}

Task<Result<OwnResponse>> Send(Services& services, OwnRequest request) {
  Result<codec::RequestUrl> url = codec::ParseRequestUrl(request.url);
  bool good = url.ok() && url.value().scheme == "https";
  if (!good) co_return Error{Code::kInvalid, "the URL of a token service is not https"};
  Result<OwnResponse> answer =
      co_await Exchange(services, url.value(), request, Deadline::After(kTokenTimeout));
  std::string failure;
  if (!answer.ok()) failure = "token service " + url.value().host + ": " + answer.error().what;
  if (!RecordOwn(services, url.value(), request.method, failure)) {
    co_return Error{Code::kIo, "it could not be recorded"};
  }
  if (!failure.empty()) co_return Error{Code::kTemporary, failure};
  co_return answer;
}

// What the job's own token says, and what would explain that it was refused.
std::string Explain(const JwtFacts& facts, int64_t server_date) {
  const std::string said = DescribeJwt(facts, Now());
  std::string out = said.empty() ? "" : "; the identity: " + said;
  const int64_t ahead = server_date == 0 ? 0 : Now() - server_date;
  if (ahead > kClockSkewMax || ahead < -kClockSkewMax) {
    out += "; this machine's clock is " + std::to_string(ahead < 0 ? -ahead : ahead) + " s " +
           (ahead < 0 ? "behind" : "ahead of") + " the service's";
  }
  return out;
}

}  // namespace

TokenGrants::TokenGrants(std::vector<TokenGrant> grants, Credentials& credentials, GrantHooks hooks)
    : credentials_(credentials), hooks_(std::move(hooks)) {
  for (TokenGrant& grant : grants) slots_.push_back({std::move(grant)});
}

void TokenGrants::GiveSubject(size_t grant, std::string text) {
  if (grant < slots_.size()) slots_[grant].given = std::move(text);
}

// A file may have another token by now, which its owner renews. The first was read already.
Task<Result<Secret>> TokenGrants::FetchSubject(Services& services, size_t index) {
  Slot& slot = slots_[index];
  const TokenGrant& grant = slot.grant;
  if (!grant.subject_url.empty()) {
    Result<OwnResponse> answer = co_await Send(services, SubjectRequest(grant));
    if (!answer.ok()) co_return std::move(answer).error();
    co_return ParseSubject(grant, answer.value().status, answer.value().body);
  }
  Secret subject(grant.key.reveal());
  if (slot.spent && !grant.subject_file.empty()) {
    slot.given.reset();
    hooks_.want_subject(index);
    const Deadline deadline = Deadline::After(kTokenTimeout);
    while (!slot.given && !deadline.passed()) {
      co_await services.loop.Sleep(Deadline::After(kTokenPoll));
    }
    const SecretString text = slot.given ? std::move(*slot.given) : SecretString();
    Result<Secret> read = ParseSubject(grant, 200, text);
    if (!read.ok()) {
      const std::string why = text.empty() ? " cannot be read any more" : ": " + read.error().what;
      co_return Error{Code::kTemporary, grant.subject_file + why};
    }
    if (read.value().reveal() != subject.reveal()) {
      hooks_.announce(read.value());
      slot.grant.key = Secret(read.value().reveal());
      slot.spent = false;
      subject = std::move(read).value();
    }
  }
  if (slot.spent && grant.once) {
    co_return Error{Code::kTemporary,
                    HostOf(grant.steps.front().url) +
                        " accepts an identity token once, and this one was exchanged already" +
                        (grant.subject_file.empty() ? "; the job gets no other one"
                                                    : "; the file has no newer one yet")};
  }
  slot.spent = true;
  co_return subject;
}

Task<Result<AccessToken>> TokenGrants::Exchange(Services& services, Slot& slot,
                                                const Secret& subject) {
  const TokenGrant& grant = slot.grant;
  AccessToken token;
  for (const ExchangeStep& step : grant.steps) {
    const bool last = &step == &grant.steps.back();
    const std::string_view before = token.values.empty() ? "" : token.values.front().reveal();
    Result<OwnResponse> answer =
        co_await Send(services, StepRequest(step, subject.reveal(), before));
    if (!answer.ok()) co_return std::move(answer).error();
    Result<AccessToken> parsed =
        last && grant.gives_aws ? ParseAwsSession(answer.value().status, answer.value().body, Now())
                                : ParseToken(answer.value().status, answer.value().body);
    if (!parsed.ok()) {
      Error error = std::move(parsed).error();
      if (!grant.provider.empty()) {
        error.what = HostOf(step.url) + ": " + error.what;
        if (error.code == Code::kRefused) {
          error.what += Explain(ReadJwt(subject.reveal()), answer.value().date);
        }
      }
      co_return error;
    }
    token = std::move(parsed).value();
  }
  co_return token;
}

Task<Result<AccessToken>> TokenGrants::Fetch(Services& services, size_t index) {
  Slot& slot = slots_[index];
  if (slot.grant.kind != TokenGrant::Kind::kExchange) {
    Result<OwnRequest> request = TokenRequest(slot.grant, Now());
    if (!request.ok()) co_return std::move(request).error();
    Result<OwnResponse> answer = co_await Send(services, std::move(request).value());
    if (!answer.ok()) co_return std::move(answer).error();
    co_return ParseToken(answer.value().status, answer.value().body);
  }
  Result<Secret> subject = co_await FetchSubject(services, index);
  if (!subject.ok()) co_return std::move(subject).error();
  if (!slot.grant.subject_url.empty()) hooks_.announce(subject.value());
  Result<AccessToken> token = co_await Exchange(services, slot, subject.value());
  if (token.ok() && !slot.grant.provider.empty()) {
    hooks_.taken({slot.grant.provider, ReadJwt(subject.value().reveal())});
  }
  co_return token;
}

Task<Status> TokenGrants::Ensure(Services& services, int grant) {
  const auto index = static_cast<size_t>(grant);
  Slot& slot = slots_.at(index);
  while (slot.busy) co_await services.loop.Sleep(Deadline::After(kTokenPoll));
  if (!slot.fresh.passed()) co_return Ok();
  if (!slot.failed_until.passed()) co_return slot.failure;
  slot.busy = true;
  Result<AccessToken> token = co_await Fetch(services, index);
  for (const milliseconds pause : kTokenPauses) {
    // Only a temporary failure is worth another try: a busy service, or one that restarts.
    if (token.ok() || token.error().code != Code::kTemporary) break;
    co_await services.loop.Sleep(Deadline::After(pause));
    token = co_await Fetch(services, index);
  }
  slot.busy = false;
  if (!token.ok()) {
    slot.failure = std::move(token).error();
    slot.failed_until = Deadline::After(kTokenRetry);
    if (slot.end.passed()) co_return slot.failure;
    slot.fresh = std::min(slot.end, slot.failed_until);
    credentials_.Prolong(grant, slot.fresh);
    co_return Ok();
  }
  // A part of the lifetime, since some tokens live for five minutes.
  const milliseconds lifetime = token.value().lifetime;
  slot.fresh = Deadline::After(lifetime - std::min<milliseconds>(kTokenEarly, lifetime / 4));
  slot.end = Deadline::After(lifetime - std::min<milliseconds>(kTokenLatest, lifetime / 10));
  for (const Secret& value : token.value().values) hooks_.announce(value);
  credentials_.SetToken(grant, std::move(token.value().values), slot.fresh);
  co_return Ok();
}

Task<Status> TokenGrants::Replace(Services& services, int grant, std::string_view refused) {
  Slot& slot = slots_.at(static_cast<size_t>(grant));
  if (credentials_.TokenOf(grant) == refused) {
    slot.fresh = slot.end = Deadline::After({});
    credentials_.Prolong(grant, slot.fresh);
  }
  co_return co_await Ensure(services, grant);
}

Task<Status> TokenGrants::EnsureIdentities(Services& services) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].grant.provider.empty()) continue;
    Status ensured = co_await Ensure(services, static_cast<int>(i));
    if (ensured.ok()) continue;
    Error error = std::move(ensured).error();
    if (error.code != Code::kTemporary) error.code = Code::kSetup;
    co_return error;
  }
  co_return Ok();
}

}  // namespace gateway
