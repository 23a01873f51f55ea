// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"
#include "eval/redteam/connection.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

constexpr size_t kAnswerMax = size_t{16} << 10;

std::string Authority(const Targets& targets) {
  return "host.openshell.internal:" + std::to_string(targets.upstream);
}

std::string Head(const Targets& targets, const std::string& line, const std::string& more = "") {
  return line + " HTTP/1.1\r\nHost: " + Authority(targets) + "\r\n" + more + "\r\n";
}

// A tunnel through the proxy; outside, the server itself.
Attempt OpenTunnel(const Targets& targets, Fd* connection) {
  if (targets.outside) return ConnectTo("127.0.0.1", targets.upstream, connection);
  Attempt attempt = ConnectToProxy(connection);
  if (attempt.came != Came::kThrough) return attempt;
  const std::string line = "CONNECT " + Authority(targets);
  if (!sys::WriteAll(connection->get(), Head(targets, line)).ok()) {
    return {Came::kUndecided, "the proxy closed"};
  }
  std::string answer;
  bool ended = false;
  while (!ended && answer.find("\r\n\r\n") == std::string::npos) {
    std::string more = ReadAnswer(*connection, 1, &ended);
    if (more.empty()) break;
    answer += more;
  }
  if (answer.starts_with("HTTP/1.1 200")) return {Came::kThrough, ""};
  return {Came::kUndecided, "no tunnel: " + answer.substr(0, answer.find('\r'))};
}

// Sends the bytes. The server, not this probe, says whether something forbidden came to it.
Attempt Send(const Targets& targets, const std::string& bytes) {
  Fd connection;
  Attempt attempt = OpenTunnel(targets, &connection);
  if (attempt.came != Came::kThrough) return {Came::kUndecided, attempt.note};
  if (!sys::WriteAll(connection.get(), bytes).ok()) return {Came::kStopped, "closed"};
  // The server then closes, and is not waited for. The gateway might take it for a client that
  // left.
  if (targets.outside) ::shutdown(connection.get(), SHUT_WR);
  bool ended = false;
  std::string answer = ReadAnswer(connection, kAnswerMax, &ended);
  if (answer.empty()) return {Came::kStopped, ended ? "closed" : "no answer"};
  return {Came::kStopped, answer.starts_with("HTTP/1.") ? answer.substr(9, 3) : "not HTTP/1"};
}

// A request that is allowed, with `more` in its head, and behind it `hidden`.
Attempt SendBehind(const Targets& targets, const std::string& id, const std::string& more,
                   const std::string& before = "") {
  const std::string hidden = before + Head(targets, "GET /closed/" + id);
  std::string lines = more;
  size_t at = lines.find("LENGTH");
  if (at != std::string::npos) lines.replace(at, 6, std::to_string(hidden.size()));
  return Send(targets, Head(targets, "GET /open/" + id, lines) + hidden);
}

constexpr char kEmptyChunks[] = "0\r\n\r\n";

using T = const Targets&;

std::vector<Probe> FramingProbes() {
  using enum Category;
  return {
      {"two-lengths", kSmuggling, "Hide a request behind two lengths", true,
       [](T t) {
         return SendBehind(t, "two-lengths", "Content-Length: 0\r\nContent-Length: LENGTH\r\n");
       }},
      {"length-and-chunks", kSmuggling, "... behind a length and chunks", true,
       [](T t) {
         return SendBehind(t, "length-and-chunks",
                           "Content-Length: LENGTH\r\nTransfer-Encoding: chunked\r\n",
                           kEmptyChunks);
       }},
      {"odd-coding", kSmuggling, "... behind a transfer coding that is not one", true,
       [](T t) {
         return SendBehind(t, "odd-coding",
                           "Content-Length: LENGTH\r\nTransfer-Encoding: xchunked\r\n",
                           kEmptyChunks);
       }},
      {"blank-before-colon", kSmuggling, "... behind a header's name that ends with a blank", true,
       [](T t) {
         return SendBehind(t, "blank-before-colon",
                           "Content-Length: LENGTH\r\nTransfer-Encoding : chunked\r\n",
                           kEmptyChunks);
       }},
      {"folded-line", kSmuggling, "... behind a folded line", true,
       [](T t) {
         return SendBehind(t, "folded-line",
                           "Content-Length: LENGTH\r\nX: 1\r\n Transfer-Encoding: chunked\r\n",
                           kEmptyChunks);
       }},
      {"bare-line-feed", kSmuggling, "... behind bare line feeds", true,
       [](T t) {
         return Send(t, "GET /open/bare-line-feed HTTP/1.1\nHost: " + Authority(t) + "\n\n" +
                            Head(t, "GET /closed/bare-line-feed"));
       }},
      {"header-line-feed", kSmuggling, "... in a header's value", true,
       [](T t) {
         return Send(t, Head(t, "GET /open/header-line-feed",
                             "X: 1\n\nGET /closed/header-line-feed HTTP/1.1\r\nHost: x\r\n"));
       }},
      {"pipelined", kSmuggling, "Send a refused request behind an allowed one", true,
       [](T t) { return SendBehind(t, "pipelined", ""); }},
      {"old-request", kSmuggling, "Send a request without a version", true,
       [](T t) { return Send(t, "GET /closed/old-request\r\n\r\n"); }},
  };
}

std::vector<Probe> RefusedProbes() {
  using enum Category;
  return {
      {"other-path", kSmuggling, "Ask for a path that no rule allows", true,
       [](T t) { return Send(t, Head(t, "GET /closed/other-path")); }},
      {"other-method", kSmuggling, "Write where reading is allowed", true,
       [](T t) {
         return Send(t, Head(t, "POST /open/other-method", "Content-Length: 6\r\n") + "stolen");
       }},
      {"dots", kSmuggling, "Leave an allowed path by dots", true,
       [](T t) { return Send(t, Head(t, "GET /open/../closed/dots")); }},
      {"encoded-dots", kSmuggling, "... by encoded dots", true,
       [](T t) { return Send(t, Head(t, "GET /open/%2e%2E/closed/encoded-dots")); }},
      {"encoded-slash", kSmuggling, "... by an encoded slash", true,
       [](T t) { return Send(t, Head(t, "GET /open/..%2fclosed/encoded-slash")); }},
      {"backslash", kSmuggling, "... by a backslash", true,
       [](T t) { return Send(t, Head(t, "GET /open/..\\..\\closed/backslash")); }},
      {"parameters", kSmuggling, "... by dots with parameters", true,
       [](T t) { return Send(t, Head(t, "GET /open/..;x/closed/parameters")); }},
      {"other-host", kSmuggling, "Name another host behind the tunnel", true,
       [](T t) {
         return Send(t, "GET /open/other-host HTTP/1.1\r\nHost: other.redteam.invalid\r\n\r\n");
       }},
      {"other-url", kSmuggling, "Name another host in the target behind the tunnel", true,
       [](T t) { return Send(t, Head(t, "GET http://other.redteam.invalid/open/other-url")); }},
      {"upgrade", kSmuggling, "Change to HTTP/2, which is not judged as the request was", true,
       [](T t) {
         return Send(t, Head(t, "GET /open/upgrade",
                             "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                             "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"));
       }},
  };
}

}  // namespace

std::vector<Probe> SmugglingProbes() {
  std::vector<Probe> all = {{"plain", Category::kSmuggling, "Send an allowed request", true,
                             [](T t) { return Send(t, Head(t, "GET /open/plain")); }}};
  for (const std::vector<Probe>& more : {FramingProbes(), RefusedProbes()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace redteam
