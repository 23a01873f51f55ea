// SPDX-License-Identifier: Apache-2.0
#include "gateway/egress_proxy.h"

#include <utility>
#include <vector>

#include "codec/text/base64.h"
#include "codec/wire/http_head.h"
#include "gateway/dial.h"
#include "gateway/http/head_reader.h"
#include "net/url.h"

namespace gateway {
namespace {

constexpr uint16_t kHttpPort = 80;

SecretString RenderConnect(const Authority& target, const SecretString& login) {
  const std::string name = RenderAuthority(target, 0);
  SecretString head = "CONNECT " + name + " HTTP/1.1\r\nHost: " + name + "\r\n";
  if (!login.empty()) {
    const SecretString encoded = codec::EncodeBase64(login);
    head.append("Proxy-Authorization: Basic ").append(encoded).append("\r\n");
  }
  head.append("\r\n");
  return head;
}

}  // namespace

Result<EgressProxy> EgressProxy::Read(net::Proxy proxy, bool by_name) {
  EgressProxy egress;
  egress.address_ = TRY(net::ParseProxy(proxy));
  if (egress.address_.tls) {
    return Error{
        Code::kUnsupported,
        "the agent's connections cannot go through a proxy that is itself reached inside "
        "TLS (https://)",
        "HTTPS_PROXY=http://proxy.example.com:3128, or NO_PROXY=\"*\" to connect directly"};
  }
  egress.settings_ = std::move(proxy);
  egress.by_name_ = by_name;
  return egress;
}

bool EgressProxy::Takes(const Authority& authority) const {
  return authority.port != kHttpPort && !policy::IsHostAlias(authority.host) &&
         net::TakesProxy(settings_, authority.host);
}

bool EgressProxy::Resolves(const Authority& authority) const {
  return by_name_ && net::KindOf(authority.host) == net::AddressKind::kName && Takes(authority);
}

std::string EgressProxy::Shown() const {
  return RenderAuthority({address_.host, address_.port}, 0);
}

Error EgressProxy::Failed(Code code, std::string_view what) const {
  return {code, "the proxy " + Shown() + ": " + std::string(what)};
}

// Its addresses in turn.
Task<Result<std::unique_ptr<Stream>>> EgressProxy::Reach(EventLoop& loop,
                                                         Resolver& resolver) const {
  Result<std::vector<policy::Address>> addresses = co_await resolver.Resolve(address_.host);
  if (!addresses.ok()) co_return Failed(addresses.error().code, addresses.error().what);
  Error last;
  for (const policy::Address& address : addresses.value()) {
    Result<std::unique_ptr<Stream>> stream = co_await Dial(loop, address, address_.port);
    if (stream.ok()) co_return stream;
    last = std::move(stream).error();
  }
  co_return Failed(last.code, last.what);
}

Task<Result<std::unique_ptr<Stream>>> EgressProxy::Open(EventLoop& loop, Resolver& resolver,
                                                        Authority authority,
                                                        policy::Address address) const {
  Result<std::unique_ptr<Stream>> stream = co_await Reach(loop, resolver);
  if (!stream.ok()) co_return stream;
  if (address != kResolvedByProxy) authority.host = policy::RenderAddress(address);
  Status asked = co_await stream.value()->Write(RenderConnect(authority, address_.login));
  if (!asked.ok()) co_return Failed(asked.error().code, asked.error().what);
  // Byte by byte up to the end of the head: what follows is the server's.
  HeadText head = co_await ReadProxyHead(*stream.value());
  if (head.kind != HeadText::kHead) {
    co_return Failed(Code::kIo, head.kind == HeadText::kEnd ? "it hung up" : head.why);
  }
  Result<codec::ResponseHead> answer = codec::ParseResponseHead(head.text);
  if (!answer.ok()) co_return Failed(Code::kIo, "its response is not HTTP");
  const int status = answer.value().status;
  if (status == 407) {
    co_return Failed(Code::kIo, address_.login.empty()
                                    ? "it asks for a user and a password (407)"
                                    : "it does not take the user and the password (407)");
  }
  if (status < 200 || status > 299) {
    co_return Failed(Code::kIo, "it responded with " + std::to_string(status) + " to CONNECT " +
                                    RenderAuthority(authority, 0));
  }
  co_return stream;
}

}  // namespace gateway
