// SPDX-License-Identifier: Apache-2.0
#include "gateway/token_grant.h"

#include <time.h>

#include "codec/wire/http_target.h"
#include "gateway/credential/limits.h"
#include "gateway/limits.h"
#include "gateway/upstream.h"

namespace gateway {
namespace {

struct OwnResponse {
  int status = 0;
  SecretString body;
};

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

}  // namespace

TokenGrants::TokenGrants(std::vector<TokenGrant> grants, Credentials& credentials,
                         std::function<void(const Secret& token)> announce)
    : credentials_(credentials), announce_(std::move(announce)) {
  for (TokenGrant& grant : grants) slots_.push_back({std::move(grant)});
}

Task<Result<AccessToken>> TokenGrants::Fetch(Services& services, const TokenGrant& grant) {
  Secret fetched;
  bool asks_source = grant.kind == TokenGrant::Kind::kExchange && !grant.subject_url.empty();
  if (asks_source) {
    Result<OwnResponse> answer = co_await Send(services, SubjectRequest(grant));
    if (!answer.ok()) co_return std::move(answer).error();
    Result<Secret> parsed = ParseSubject(grant, answer.value().status, answer.value().body);
    if (!parsed.ok()) co_return std::move(parsed).error();
    fetched = std::move(parsed).value();
  }
  std::string_view subject = asks_source ? fetched.reveal() : grant.key.reveal();
  Result<OwnRequest> request = TokenRequest(grant, subject, int64_t{::time(nullptr)});
  if (!request.ok()) co_return std::move(request).error();
  Result<OwnResponse> answer = co_await Send(services, std::move(request).value());
  if (!answer.ok()) co_return std::move(answer).error();
  Result<AccessToken> token = ParseToken(answer.value().status, answer.value().body);
  if (!token.ok() || grant.impersonation_url.empty()) co_return token;
  OwnRequest impersonate = ImpersonationRequest(grant, token.value().value.reveal());
  Result<OwnResponse> last = co_await Send(services, std::move(impersonate));
  if (!last.ok()) co_return std::move(last).error();
  co_return ParseToken(last.value().status, last.value().body);
}

Task<Status> TokenGrants::Ensure(Services& services, int grant) {
  Slot& slot = slots_.at(static_cast<size_t>(grant));
  while (slot.busy) co_await services.loop.Sleep(Deadline::After(kTokenPoll));
  if (!slot.fresh.passed()) co_return Ok();
  if (!slot.failed_until.passed()) co_return Error{Code::kTemporary, slot.failure};
  slot.busy = true;
  Result<AccessToken> token = co_await Fetch(services, slot.grant);
  slot.busy = false;
  if (!token.ok()) {
    slot.failure = token.error().what;
    slot.failed_until = Deadline::After(kTokenRetry);
    co_return Error{Code::kTemporary, slot.failure};
  }
  std::chrono::seconds usable = token.value().lifetime - kTokenEarly;
  // A token shorter than that is used for what there is of it, less a round trip.
  if (usable.count() <= 0) usable = token.value().lifetime / 2;
  slot.fresh = Deadline::After(usable);
  announce_(token.value().value);
  credentials_.SetToken(grant, std::move(token.value().value), slot.fresh);
  co_return Ok();
}

}  // namespace gateway
