// SPDX-License-Identifier: Apache-2.0
#include "gateway/egress_proxy.h"

#include <catch2/catch.hpp>

#include "gateway/test_services.h"

namespace gateway {
namespace {

const Authority kServer = {"api.example.com", 443};

Destination Behind(policy::Address address) { return {kServer, {address}}; }

const policy::Address kPublic = policy::ParseAddress("93.184.216.34").value();

// The origin of `services` as a proxy, with that user.
EgressProxy NewProxy(TestServices& services, const std::string& login = "", bool by_name = false) {
  const std::string port = std::to_string(services.origin().port());
  return EgressProxy::Read({"http://" + login + "127.0.0.1:" + port, ""}, by_name).value();
}

// The proxy: reads one CONNECT into `asked` and gives `answer`.
Task<void> AnswerConnect(TestServices& services, std::string answer, std::string& asked) {
  std::unique_ptr<Stream> stream = co_await services.origin().Accept();
  asked = co_await ReadTo(*stream, "\r\n\r\n");
  if (!answer.empty()) (void)co_await stream->Write(answer);
}

// Returns what the server sends first, through the proxy.
Task<Result<std::string>> Greeting(Upstream& upstream) {
  Result<std::unique_ptr<Stream>> stream = co_await upstream.OpenStream(false);
  if (!stream.ok()) co_return std::move(stream).error();
  co_return co_await ReadToEnd(*stream.value());
}

TEST_CASE("The proxy is asked for the address that was judged, or for the name") {
  struct Case {
    const char* login;
    bool by_name;
    const char* asked;
  };
  const Case cases[] = {
      {"", false, "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n\r\n"},
      {"user:p%40ss@", false,
       "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n"
       "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"},
      {"", true, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.login, one.by_name);
    TestServices services(OpenEndpoint(policy::Protocol::kL4));
    EgressProxy proxy = NewProxy(services, one.login, one.by_name);
    services.get().proxy = &proxy;
    std::string asked;
    // The server speaks first, and so early that the proxy passes both on at once.
    SpawnPeer(services.loop(),
              AnswerConnect(services, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0\r\n", asked));
    Upstream upstream(services.get(), Behind(one.by_name ? kResolvedByProxy : kPublic));
    Result<std::string> greeting = RunUntilDone(services.loop(), Greeting(upstream));
    REQUIRE(greeting.ok());
    CHECK(greeting.value() == "SSH-2.0\r\n");
    CHECK(asked == one.asked);
  }
}

TEST_CASE("A proxy that opens no tunnel fails the connection, and its password is not told") {
  struct Case {
    const char* login;
    const char* answer;
    const char* what;
  };
  const Case cases[] = {
      {"", "HTTP/1.1 403 Forbidden\r\n\r\n", "it responded with 403 to CONNECT 93.184.216.34:443"},
      {"", "HTTP/1.1 100 Continue\r\n\r\n", "it responded with 100 to CONNECT 93.184.216.34:443"},
      {"", "HTTP/1.0 407 No\r\n\r\n", "it asks for a user and a password (407)"},
      {"me:word@", "HTTP/1.0 407 No\r\n\r\n", "it does not take the user and the password (407)"},
      {"me:word@", "SSH-2.0-server\r\n\r\n", "its response is not HTTP"},
      {"me:word@", "", "it hung up"},
      {"", "HTTP/1.1 200 OK\r\n", "connection closed in the middle of a head"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.login, one.answer);
    TestServices services(OpenEndpoint(policy::Protocol::kL4));
    EgressProxy proxy = NewProxy(services, one.login);
    services.get().proxy = &proxy;
    std::string asked;
    SpawnPeer(services.loop(), AnswerConnect(services, one.answer, asked));
    Upstream upstream(services.get(), Behind(kPublic));
    Status reached = RunUntilDone(services.loop(), upstream.Reach());
    REQUIRE_FALSE(reached.ok());
    CHECK(reached.error().what == "the proxy " + proxy.Shown() + ": " + one.what);
    services.origin().Close();
    Status none = RunUntilDone(services.loop(), upstream.Reach());
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().what.find("refused") != std::string::npos);
  }
}

TEST_CASE("This machine, what is excepted and port 80 are reached without the proxy") {
  struct Case {
    Authority authority;
    bool takes;
    bool resolves;
  };
  const Case cases[] = {
      {{"api.example.com", 443}, true, true},
      {{"api.example.com", 22}, true, true},
      {{"api.example.com", 80}, false, false},
      {{"93.184.216.34", 443}, true, false},
      {{"127.1", 443}, false, false},
      {{"0x0a.1.2.3", 443}, true, false},
      {{"localhost", 443}, false, false},
      {{"a.localhost", 443}, false, false},
      {{"host.openshell.internal", 443}, false, false},
      {{"forge.corp.example", 443}, false, false},
      {{"10.1.2.3", 443}, false, false},
  };
  const net::Proxy settings{"proxy.example:3128", "corp.example, 10.0.0.0/8"};
  EgressProxy addresses = EgressProxy::Read(settings, false).value();
  EgressProxy names = EgressProxy::Read(settings, true).value();
  CHECK(names.Shown() == "proxy.example:3128");
  for (const Case& one : cases) {
    CAPTURE(one.authority.host, one.authority.port);
    CHECK(addresses.Takes(one.authority) == one.takes);
    CHECK(names.Takes(one.authority) == one.takes);
    CHECK_FALSE(addresses.Resolves(one.authority));
    CHECK(names.Resolves(one.authority) == one.resolves);
  }
}

TEST_CASE("A name is judged by its addresses, unless the proxy resolves it") {
  TestServices services(OpenEndpoint(policy::Protocol::kL4));
  const auto find = [&](const EgressProxy& proxy, const policy::Handling& handling) {
    services.get().proxy = &proxy;
    // No name server knows it.
    return RunUntilDone(services.loop(),
                        FindDestination(services.get(), {"api.invalid", 443}, handling));
  };
  EgressProxy names = NewProxy(services, "", true);
  DestinationVerdict verdict = find(names, {});
  CHECK(verdict.allowed);
  CHECK(verdict.destination.addresses == std::vector<policy::Address>{kResolvedByProxy});
  policy::Handling listed;
  listed.allowed_ips = {"10.0.0.0/8"};
  verdict = find(names, listed);
  CHECK_FALSE(verdict.allowed);
  CHECK(verdict.label == "allowed_ips cannot be checked: the proxy resolves names");
}

TEST_CASE("A proxy inside TLS is refused") {
  Result<EgressProxy> read = EgressProxy::Read({"https://me:word@proxy.example", ""}, false);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == Code::kUnsupported);
  CHECK(read.error().what.find("word") == std::string::npos);
  CHECK_FALSE(EgressProxy::Read({"", ""}, false).ok());
}

}  // namespace
}  // namespace gateway
