// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream.h"

#include "gateway/async/limits.h"
#include "gateway/dial.h"
#include "gateway/http/http1_server.h"
#include "gateway/names/socket_address.h"

namespace gateway {

Task<DestinationVerdict> FindDestination(Services& services, Authority authority,
                                         policy::Handling handling) {
  DestinationVerdict verdict;
  std::vector<policy::Address> resolved;
  if (services.sent != nullptr) services.sent->LookAtName(authority.host);
  if (policy::IsHostAlias(authority.host)) {
    resolved = LoopbackAddresses();
  } else if (services.proxy != nullptr && services.proxy->Resolves(authority)) {
    policy::AddressVerdict judged = policy::DecideUnresolved(handling, authority.port);
    verdict.allowed = judged.allowed;
    verdict.label = std::move(judged.label);
    verdict.destination = Destination{std::move(authority), {kResolvedByProxy}};
    co_return verdict;
  } else {
    Result<std::vector<policy::Address>> answer =
        co_await services.resolver.Resolve(authority.host);
    if (services.model_names != nullptr) {
      services.model_names->Take(authority.host, answer.ok() ? nullptr : &answer.error());
    }
    if (!answer.ok()) {
      verdict.failure = answer.error().what;
      if (services.proxy != nullptr && services.proxy->Takes(authority)) {
        verdict.failure += " (the proxy resolves names only with AGENTIC_CI_PROXY_BY_NAME=true)";
      }
      co_return verdict;
    }
    resolved = std::move(answer).value();
  }
  policy::AddressVerdict decision =
      policy::DecideDestination(handling, authority.host, authority.port, resolved, IsOwnAddress);
  verdict.allowed = decision.allowed && !decision.addresses.empty();
  verdict.label = std::move(decision.label);
  verdict.destination = Destination{std::move(authority), std::move(decision.addresses)};
  co_return verdict;
}

Upstream::Upstream(Services& services, Destination destination)
    : services_(services),
      destination_(std::move(destination)),
      plain_key_(UpstreamKey(false, destination_.authority.host, destination_.authority.port)),
      tls_key_(UpstreamKey(true, destination_.authority.host, destination_.authority.port)),
      shared_(services.loop) {}

Task<Result<Upstream::Dialled>> Upstream::DialAddress(policy::Address address) {
  const Authority& to = destination_.authority;
  const EgressProxy* proxy = services_.proxy;
  Task<Result<std::unique_ptr<Stream>>> dialling =
      proxy != nullptr && proxy->Takes(to)
          ? proxy->Open(services_.loop, services_.resolver, to, address)
          : gateway::Dial(services_.loop, address, to.port);
  Result<std::unique_ptr<Stream>> stream = co_await dialling;
  if (!stream.ok()) co_return std::move(stream).error();
  auto dialled = std::make_unique<UpstreamConnection>();
  dialled->stream = std::move(stream).value();
  if (services_.allowances != nullptr) {
    dialled->stream->Bound(services_.allowances->Of(to.host));
  }
  dialled->key = plain_key_;
  dialled->address = address;
  co_return dialled;
}

// The addresses in turn.
Task<Result<Upstream::Dialled>> Upstream::Dial() {
  Error last{Code::kIo, "no address"};
  for (const policy::Address& address : destination_.addresses) {
    Result<Dialled> dialled = co_await DialAddress(address);
    if (dialled.ok()) co_return dialled;
    last = std::move(dialled).error();
  }
  co_return last;
}

Task<Status> Upstream::Reach() {
  bool kept = services_.pool.Has(tls_key_, destination_.addresses) ||
              services_.pool.Has(plain_key_, destination_.addresses);
  if (kept) co_return Ok();
  Result<Dialled> dialled = co_await Dial();
  if (!dialled.ok()) co_return std::move(dialled).error();
  dialled_ = std::move(dialled).value();
  co_return Ok();
}

Task<Result<Upstream::Dialled>> Upstream::OpenUnused(bool tls, bool http2) {
  Dialled connection = std::move(dialled_);
  if (connection && connection->stream->IsStale()) connection.reset();
  if (!connection) {
    Result<Dialled> dialled = co_await Dial();
    if (!dialled.ok()) co_return dialled;
    connection = std::move(dialled).value();
  }
  if (!tls) co_return connection;
  const Authority& authority = destination_.authority;
  Result<SslOwner> ssl = services_.trust.NewClient(authority.host, authority.port, http2);
  if (!ssl.ok()) co_return std::move(ssl).error();
  Deadline deadline = Deadline::After(kHandshakeTimeout);
  Status shaken = co_await connection->stream->StartTls(std::move(ssl).value(), deadline);
  if (!shaken.ok()) co_return std::move(shaken).error();
  connection->key = tls_key_;
  co_return connection;
}

Task<Result<std::unique_ptr<ServerRequest>>> Upstream::Open(Needs needs) {
  if (offers_http2_) return OpenHttp2(needs);
  return OpenHttp1(needs);
}

Task<Result<std::unique_ptr<ServerRequest>>> Upstream::OpenHttp2(Needs needs) {
  while (dialling_) {
    Turn turn(services_.loop);
    waiting_.push_back(&turn);
    co_await turn.come.Within(Deadline::Never());
    if (turn.failed.has_value()) co_return *turn.failed;
  }
  if (!offers_http2_) co_return co_await OpenHttp1(needs);
  std::unique_ptr<ServerRequest> request = shared_.Take();
  if (request) co_return request;
  if (shared_.full()) co_return Error{Code::kIo, "too many connections that take no requests"};
  dialling_ = true;
  Result<Dialled> opened = co_await OpenUnused(needs.tls, true);
  dialling_ = false;
  for (Turn* turn : std::exchange(waiting_, {})) {
    if (!opened.ok()) turn->failed = opened.error();
    turn->come.Set();
  }
  if (!opened.ok()) co_return std::move(opened).error();
  Dialled connection = std::move(opened).value();
  if (!needs.tls || connection->stream->protocol() == "h2") {
    shared_.Add(std::move(connection->stream));
    request = shared_.Take();
  } else {
    offers_http2_ = false;  // It speaks HTTP/1 alone.
    request = std::make_unique<Http1ServerRequest>(services_.pool, std::move(connection));
  }
  if (!request) co_return Error{Code::kIo, "the connection was closed immediately"};
  co_return request;
}

Task<void> Upstream::Close() { co_return co_await shared_.Close(); }

std::unique_ptr<ServerRequest> Upstream::TakeKept(Needs needs) {
  if (needs.fresh || dialled_) return nullptr;
  Dialled kept = services_.pool.Take(needs.tls ? tls_key_ : plain_key_, destination_.addresses);
  if (!kept) return nullptr;
  return std::make_unique<Http1ServerRequest>(services_.pool, std::move(kept));
}

Task<Result<std::unique_ptr<ServerRequest>>> Upstream::OpenHttp1(Needs needs) {
  std::unique_ptr<ServerRequest> kept = TakeKept(needs);
  if (kept) return Result<std::unique_ptr<ServerRequest>>(std::move(kept));
  return DialHttp1(needs);
}

Task<Result<std::unique_ptr<ServerRequest>>> Upstream::DialHttp1(Needs needs) {
  Result<Dialled> opened = co_await OpenUnused(needs.tls, false);
  if (!opened.ok()) co_return std::move(opened).error();
  std::unique_ptr<ServerRequest> request =
      std::make_unique<Http1ServerRequest>(services_.pool, std::move(opened).value());
  co_return request;
}

// A server that greets first may have written already: dialled_ is not checked for that here.
Task<Result<std::unique_ptr<Stream>>> Upstream::OpenStream(bool tls) {
  if (dialled_ && !tls) co_return std::move(std::exchange(dialled_, nullptr)->stream);
  Result<Dialled> opened = co_await OpenUnused(tls, false);
  if (!opened.ok()) co_return std::move(opened).error();
  co_return std::move(opened.value()->stream);
}

}  // namespace gateway
