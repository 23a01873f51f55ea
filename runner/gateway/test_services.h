// SPDX-License-Identifier: Apache-2.0
// For unit tests: what a connection of the gateway needs, and an upstream server on loopback. All
// of it runs in one event loop.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/async/test_line.h"
#include "gateway/connection.h"
#include "gateway/services.h"
#include "gateway/upstream.h"

namespace gateway {

// The name that a policy may open although it is loopback's.
inline constexpr const char* kOriginHost = "host.openshell.internal";

// A server whose every answer is the test's.
class Origin {
 public:
  explicit Origin(EventLoop& loop)
      : loop_(loop), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    port_ = ntohs(name.sin_port);
  }
  ~Origin() { loop_.Forget(socket_.get()); }
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  uint16_t port() const { return port_; }
  // Returns the next connection; null if none came within the deadline.
  Task<std::unique_ptr<Stream>> Accept(Deadline deadline = Late()) {
    bool ready = co_await loop_.Readable(socket_.get(), deadline);
    if (!ready) co_return nullptr;
    Fd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    REQUIRE(accepted.valid());
    ++accepted_;
    co_return std::make_unique<Stream>(loop_, std::move(accepted));
  }
  // Returns how many connections were accepted.
  int accepted() const { return accepted_; }
  // Refuses connections from now on.
  void Close() {
    loop_.Forget(socket_.get());
    socket_.Close();
  }

 private:
  EventLoop& loop_;
  Fd socket_;
  uint16_t port_ = 0;
  int accepted_ = 0;
};

// Starts a task that may still wait for its peer when the test ends: no leak, the loop ends with
// it.
inline void SpawnPeer(EventLoop& loop, Task<void> task) {
#if defined(__SANITIZE_ADDRESS__)
  __lsan::ScopedDisabler ignored;
#endif
  loop.Spawn(std::move(task));
}

// Reads what arrives up to and with `end`; returns less if the peer finishes or breaks before.
inline Task<std::string> ReadTo(Stream& stream, std::string end) {
  std::string text;
  for (;;) {
    text.assign(stream.buffered());
    size_t at = text.find(end);
    if (at != std::string::npos) {
      stream.Consume(at + end.size());
      co_return text.substr(0, at + end.size());
    }
    Result<size_t> read = co_await stream.Fill(Late());
    if (!read.ok()) CHECK(read.error().code != Code::kTemporary);  // Longer than any test waits.
    if (!read.ok() || read.value() == 0) break;
  }
  stream.Consume(text.size());
  co_return text;
}

// Returns everything until the peer finishes or breaks.
inline Task<std::string> ReadToEnd(Stream& stream) { return ReadTo(stream, std::string(1, '\1')); }

// A file in memory that can be read back.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("test", MFD_CLOEXEC)) { REQUIRE(fd_.valid()); }
  Fd Share() const { return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }
  std::string Content() const {
    std::string bytes(size_t{1} << 20, '\0');
    ssize_t n = ::pread(fd_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return bytes;
  }

 private:
  Fd fd_;
};

constexpr milliseconds kTestSweep{2};

// All services of a gateway with one policy. No name is resolved, and callers are not identified.
class TestServices {
 public:
  // An `endpoint` without a host gets the origin's.
  explicit TestServices(policy::Endpoint endpoint) : policy_(NewPolicy(std::move(endpoint))) {
    owner_.caller.binary = "/usr/bin/curl";
  }
  // The pool sees that the servers are gone, and is at rest.
  ~TestServices() { RunUntilDone(loop_, Pause(loop_, 5 * kTestSweep)); }

  EventLoop& loop() { return loop_; }
  Origin& origin() { return origin_; }
  Services& get() { return services_; }
  LivePolicy& policy() { return policy_; }
  const caller::Owner& owner() const { return owner_; }
  Authority authority() const { return {kOriginHost, origin_.port()}; }
  Destination destination() const {
    return {authority(), {policy::ParseAddress("127.0.0.1").value()}};
  }
  // Returns the records so far, one JSON object a line.
  std::string Records() const { return records_.Content(); }
  policy::Policy NewPolicy(policy::Endpoint endpoint) const {
    if (endpoint.host.empty()) endpoint.host = kOriginHost;
    if (endpoint.ports.empty()) endpoint.ports = {origin_.port()};
    policy::NetworkPolicy network;
    network.key = network.name = "only";
    network.endpoints = {std::move(endpoint)};
    network.binaries = {"/usr/bin/curl"};
    policy::Policy policy;
    policy.network = {std::move(network)};
    return policy;
  }

 private:
  EventLoop loop_ = EventLoop::Open().value();
  Origin origin_{loop_};
  MemoryFile records_;
  codec::SecretMask secrets_;
  LivePolicy policy_;
  std::string policy_file_ = "policy.yml";
  Credentials credentials_{{}};
  CertificateAuthority authority_ = CertificateAuthority::Create().value();
  UpstreamTrust trust_ = UpstreamTrust::Load(authority_.pem()).value();
  UpstreamPool pool_{loop_, kTestSweep};
  std::unique_ptr<Resolver> resolver_ = Resolver::Open(loop_, {}).value();
  record::Recorder recorder_{records_.Share(), Fd(::memfd_create("log", MFD_CLOEXEC)), "s1",
                             secrets_};
  IdentityAsker identities_{loop_, Fd()};
  SyntheticPool names_;
  caller::Owner owner_;
  Services services_{loop_, policy_,    policy_file_, credentials_, authority_, trust_,
                     pool_, *resolver_, recorder_,    identities_,  names_};
};

// Makes an endpoint whose one rule allows every request; it has none for kL4.
inline policy::Endpoint OpenEndpoint(policy::Protocol protocol) {
  policy::Endpoint endpoint;
  endpoint.protocol = protocol;
  if (protocol == policy::Protocol::kL4) return endpoint;
  policy::HttpRule rule;
  rule.method = "*";
  rule.path = "/**";
  endpoint.rules = {rule};
  return endpoint;
}

}  // namespace gateway
