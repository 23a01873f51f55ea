// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/deadline.h"
#include "base/sys.h"

namespace redteam {
namespace {

constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::chrono::milliseconds kPause{300};  // After the last byte of an answer.

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

Address AddressOf(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *v6;
  }
  return address;
}

bool WaitFor(int fd, short events, std::chrono::milliseconds span) {
  pollfd one = {fd, events, 0};
  return ::poll(&one, 1, static_cast<int>(span.count())) > 0;
}

Attempt Connect(Fd socket, const Address& address, Fd* connection) {
  if (!socket.valid()) return Called(-1);
  if (address.size == 0) return {Came::kUndecided, "not an address"};
  auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(socket.get(), name, address.size) != 0) {
    if (errno != EINPROGRESS) return Called(-1);
    if (!WaitFor(socket.get(), POLLOUT, kPatience)) return {Came::kUndecided, "no answer"};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return Called(-1);
  }
  if (connection != nullptr) *connection = std::move(socket);
  return {Came::kThrough, "connected"};
}

Fd SocketFor(const Address& address, int type) {
  return Fd(::socket(address.storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Attempt ConnectTo(const std::string& address, int port, Fd* connection) {
  Address parsed = AddressOf(address, port);
  return Connect(SocketFor(parsed, SOCK_STREAM), parsed, connection);
}

Attempt ConnectToProxy(Fd* connection) {
  constexpr std::string_view kScheme = "http://";
  std::string proxy = sys::Environment("HTTP_PROXY").value_or("");
  if (!proxy.starts_with(kScheme)) return {Came::kUndecided, "no proxy"};
  proxy.erase(0, kScheme.size());
  size_t colon = proxy.rfind(':');
  if (colon == std::string::npos) return {Came::kUndecided, "no proxy"};
  int port = 0;
  std::from_chars(proxy.data() + colon + 1, proxy.data() + proxy.size(), port);
  size_t at = proxy.find('@') + 1;  // 0 without one.
  Attempt attempt = ConnectTo(proxy.substr(at, colon - at), port, connection);
  if (attempt.came == Came::kThrough) return attempt;
  return {Came::kUndecided, "the proxy cannot be reached: " + attempt.note};
}

Attempt ConnectUnix(const std::string& name) {
  Address address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (name.empty() || name.size() >= sizeof local->sun_path) return {Came::kUndecided, "no name"};
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (name.front() == '@') {
    local->sun_path[0] = '\0';
  } else {
    ++address.size;
  }
  return Connect(SocketFor(address, SOCK_STREAM), address, nullptr);
}

Attempt SendDatagram(const std::string& address, int port, std::string_view bytes,
                     std::string* answer) {
  Address parsed = AddressOf(address, port);
  Fd socket = SocketFor(parsed, SOCK_DGRAM);
  Fd connected;
  Attempt attempt = Connect(std::move(socket), parsed, &connected);
  if (attempt.came != Came::kThrough) return attempt;
  if (::send(connected.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return Called(-1);
  if (!WaitFor(connected.get(), POLLIN, kPatience)) return {Came::kUndecided, "no answer"};
  char buffer[2048];
  ssize_t got = ::recv(connected.get(), buffer, sizeof buffer, 0);
  if (got < 0) return Called(-1);
  if (answer != nullptr) answer->assign(buffer, static_cast<size_t>(got));
  return {Came::kThrough, "answered"};
}

std::string ReadAnswer(const Fd& connection, size_t bytes_max, bool* ended) {
  std::string answer;
  *ended = false;
  while (answer.size() < bytes_max) {
    if (!WaitFor(connection.get(), POLLIN, answer.empty() ? kPatience : kPause)) break;
    char buffer[4096];
    ssize_t got = ::recv(connection.get(), buffer, sizeof buffer, 0);
    *ended = got <= 0;
    if (got <= 0) break;
    answer.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

Result<Fd> Listen(int family, const void* address, socklen_t size) {
  Fd server(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server.valid()) return Errno("socket");
  if (::bind(server.get(), static_cast<const sockaddr*>(address), size) != 0) return Errno("bind");
  if (::listen(server.get(), 16) != 0) return Errno("listen");
  return server;
}

Result<Fd> ListenOnLoopback(int* port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Fd server = TRY(Listen(AF_INET, &address, sizeof address));
  socklen_t size = sizeof address;
  if (::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Errno("getsockname");
  }
  *port = ntohs(address.sin_port);
  return server;
}

}  // namespace redteam
