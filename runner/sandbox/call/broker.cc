// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

#include "base/sys.h"
#include "sandbox/call/file_call.h"
#include "sandbox/call/process_call.h"
#include "sandbox/call/tcp_listeners.h"
#include "sandbox/call/terminal_call.h"
#include "sandbox/network/network.h"

namespace sandbox {
namespace {

// Sockets that are made and not connected, each a descriptor of the supervisor's. Who has more
// loses the oldest: it is made anew when it is connected.
constexpr size_t kOwnMax = 256;
constexpr size_t kNotedMax = 4096;
constexpr size_t kBoundMax = 1024;
constexpr int kMultipathTcp = 262;
constexpr uint16_t kNamePort = 53;
// Loopback connects at once, unless the queue of the listener is full. Limits wait meanwhile.
constexpr int kConnectWaitMs = 100;

bool IsInternet(int family) { return family == AF_INET || family == AF_INET6; }

// 0 for what the agent may have; otherwise the error that a program is best told.
int RefuseKind(int family, int type, int protocol) {
  if (family == AF_UNIX) return type == SOCK_STREAM || type == SOCK_SEQPACKET ? 0 : EACCES;
  if (!IsInternet(family)) return EAFNOSUPPORT;
  if (type != SOCK_STREAM) return EACCES;
  if (protocol == kMultipathTcp) return EPROTONOSUPPORT;  // Then programs take TCP.
  return protocol == 0 || protocol == IPPROTO_TCP ? 0 : EACCES;
}

// A socket of the agent's: one of IP can use loopback alone, and nothing without CAP_NET_RAW can
// change that.
Result<Fd> OpenSocket(int family, int type, int protocol) {
  Fd made(::socket(family, type | SOCK_CLOEXEC, protocol));
  if (!made.valid()) return Errno("socket");
  constexpr char kLoopback[] = "lo";
  if (IsInternet(family) &&
      ::setsockopt(made.get(), SOL_SOCKET, SO_BINDTODEVICE, kLoopback, sizeof kLoopback) != 0) {
    return Errno("setsockopt(SO_BINDTODEVICE)");
  }
  return made;
}

SocketAddress GatewaySocketAddress(int family, uint16_t port) {
  SocketAddress result;
  if (family == AF_INET) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    ::memcpy(&result.bytes, &address, result.size = sizeof address);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
    address.sin6_addr.s6_addr[12] = 127;
    address.sin6_addr.s6_addr[15] = 1;
    address.sin6_port = htons(port);
    ::memcpy(&result.bytes, &address, result.size = sizeof address);
  }
  return result;
}

// Connects as the caller's own connect(2) would, but for no longer than kConnectWaitMs. Returns 0
// or an errno.
int ConnectSocket(int socket, const SocketAddress& to) {
  int flags = ::fcntl(socket, F_GETFL);
  bool waits = (flags & O_NONBLOCK) == 0;
  if (waits) (void)::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  int error =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&to.bytes), to.size) == 0 ? 0 : errno;
  if (waits && error == EINPROGRESS) {
    pollfd entry{socket, POLLOUT, 0};
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (::poll(&entry, 1, kConnectWaitMs) == 1) {
      (void)::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (waits) (void)::fcntl(socket, F_SETFL, flags);
  return error;
}

uint64_t InodeOf(int fd) {
  struct stat st {};
  return ::fstat(fd, &st) == 0 ? st.st_ino : 0;
}

std::optional<SocketAddress> ReadAddress(const Call& call) {
  SocketAddress address;
  address.size = static_cast<socklen_t>(call.arguments[2]);
  if (address.size < sizeof(sa_family_t) || address.size > sizeof address.bytes) {
    return std::nullopt;
  }
  std::optional<std::string> bytes = ReadMemory(call.thread, call.arguments[1], address.size);
  if (!bytes) return std::nullopt;
  ::memcpy(&address.bytes, bytes->data(), bytes->size());
  return address;
}

// Returns whether that is the name of no file: any process of the host can connect to one, and
// those that look for it would find the agent. An address without a name has the kernel choose one.
bool IsAbstractName(const SocketAddress& address) {
  constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);
  if (address.bytes.ss_family != AF_UNIX) return false;
  return address.size <= kPathAt || reinterpret_cast<const char*>(&address.bytes)[kPathAt] == 0;
}

}  // namespace

std::optional<Connect> Broker::Take(const CallListener& listener, const Call& call) {
  ActAsAgent agent(setup_.ids);
  switch (call.number) {
    case SYS_socket:
      MakeSocket(listener, call);
      return std::nullopt;
    case SYS_connect:
      return TakeConnect(listener, call);
    case SYS_bind:
    case SYS_listen: {
      // The kernel reads the address again: a thread of the caller's may have changed it by then,
      // and gain a name, but no way out.
      if (call.number == SYS_bind) {
        std::optional<SocketAddress> address = ReadAddress(call);
        if (address && IsAbstractName(*address)) {
          (void)listener.Answer(call.id, -EACCES);
          return std::nullopt;
        }
      }
      // Otherwise harmless by themselves. But while we hold a socket, its port is taken.
      std::optional<uint64_t> inode = SocketInode(call.thread, call.Number(0));
      auto known = inode ? own_.find(*inode) : own_.end();
      if (inode && call.number == SYS_bind) NoteBound(*inode, call);
      if (inode && call.number == SYS_listen) Note(listening_, *inode);
      if (known != own_.end() && (call.number == SYS_listen || IsInternet(known->second.family))) {
        Drop(*inode);
      }
      (void)listener.Continue(call.id);
      return std::nullopt;
    }
    case SYS_ioctl:
      AnswerTerminalCall(listener, call);
      return std::nullopt;
#ifdef SYS_open  // Linux on arm64 never had it.
    case SYS_open:
#endif
    case SYS_openat:
      AnswerTerminalOpen(listener, call);
      return std::nullopt;
    default:
      if (!AnswerProcessCall(listener, call)) AnswerFileCall(listener, call, setup_.writable);
      return std::nullopt;
  }
}

void Broker::MakeSocket(const CallListener& listener, const Call& call) {
  int family = call.Number(0);
  int type = call.Number(1) & 0xf;
  int flags = call.Number(1) & ~0xf;
  int protocol = call.Number(2);
  // The three numbers decide, since nothing can change them any more.
  if (family == AF_NETLINK && protocol == 0) return void(listener.Continue(call.id));
  if (int error = RefuseKind(family, type, protocol)) {
    return void(listener.Answer(call.id, -error));
  }
  Result<Fd> made = OpenSocket(family, type | (flags & SOCK_NONBLOCK), protocol);
  if (!made.ok()) return void(listener.Answer(call.id, -made.error().os_error));
  if (!listener.AnswerWithCopy(call.id, made.value().get(), (flags & SOCK_CLOEXEC) != 0)) return;
  Keep({std::move(made).value(), family});
}

std::optional<Connect> Broker::TakeConnect(const CallListener& listener, const Call& call) {
  auto refuse = [&](int error) {
    (void)listener.Answer(call.id, -error);
    return std::nullopt;
  };
  std::optional<SocketAddress> address = ReadAddress(call);
  if (!address) return refuse(EFAULT);
  std::optional<uint64_t> inode = SocketInode(call.thread, call.Number(0));
  if (!inode) return refuse(ENOTSOCK);
  auto known = own_.find(*inode);
  // Programs ask a second time to learn whether they are connected, and the kernel does after a
  // signal.
  bool again = known == own_.end() &&
               std::find(connected_.begin(), connected_.end(), *inode) != connected_.end();
  if (address->bytes.ss_family == AF_UNIX) {
    if (again) return refuse(EISCONN);
    bool connects = known != own_.end() && known->second.family == AF_UNIX;
    if (!connects) return refuse(EACCES);
    ConnectUnix(listener, call, known->second, *address);
    return std::nullopt;
  }
  if (!ParseTarget(*address)) return refuse(EAFNOSUPPORT);
  if (again) return refuse(EISCONN);
  if (known == own_.end()) {
    // It is bound, or was one of too many: another one takes its place.
    std::string protocol = SocketProtocol(call.thread, call.Number(0));
    std::optional<int> flags = DescriptorFlags(call.thread, call.Number(0));
    if (!flags || !protocol.starts_with("TCP")) return refuse(EACCES);
    int family = protocol == "TCP" ? AF_INET : AF_INET6;
    Result<Fd> made = OpenSocket(family, SOCK_STREAM | (*flags & O_NONBLOCK), 0);
    if (!made.ok()) return refuse(made.error().os_error);
    BindAlike(made.value().get(), *inode, *ParseTarget(*address));
    inode = Keep({std::move(made).value(), family, true, (*flags & O_CLOEXEC) != 0});
  }
  Connect connect{.id = call.id,
                  .thread = call.thread,
                  .socket = call.Number(0),
                  .inode = *inode,
                  .target = *ParseTarget(*address)};
  // Every address has the gateway's name service, over TCP.
  if (!IsLocal(connect.target.address) || connect.target.port == kNamePort) return connect;
  Own& own = own_.at(*inode);
  int error =
      IsServer(connect.target.port) ? ConnectSocket(own.socket.get(), *address) : ECONNREFUSED;
  (void)Finish(listener, connect, error);
  return std::nullopt;
}

void Broker::NoteBound(uint64_t inode, const Call& call) {
  std::optional<SocketAddress> address = ReadAddress(call);
  if (!address || !ParseTarget(*address)) return;
  bound_.emplace_back(inode, *address);
  if (bound_.size() > kBoundMax) bound_.pop_front();
}

// Gives `socket`, which takes the place of the agent's, the address that the agent gave its own; it
// counts at the agent's own servers alone, since the sockets of the gateway are not the agent's.
// The port is another one where the agent's socket does not share it.
void Broker::BindAlike(int socket, uint64_t replaced, const Target& target) const {
  if (!IsLocal(target.address)) return;
  auto bound = std::find_if(bound_.rbegin(), bound_.rend(),
                            [&](const auto& one) { return one.first == replaced; });
  if (bound == bound_.rend()) return;
  SocketAddress address = bound->second;
  auto* generic = reinterpret_cast<sockaddr*>(&address.bytes);
  int on = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, generic, address.size) == 0) return;
  // The port lies at the same place in an address of either kind.
  reinterpret_cast<sockaddr_in*>(generic)->sin_port = 0;
  (void)::bind(socket, generic, address.size);
}

// A socket's file alone says whose it is; an abstract name would be any process's.
void Broker::ConnectUnix(const CallListener& listener, const Call& call, const Own& own,
                         const SocketAddress& address) {
  auto refuse = [&](int error) { (void)listener.Answer(call.id, -error); };
  constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);
  const char* bytes = reinterpret_cast<const char*>(&address.bytes);
  std::string path(bytes + kPathAt, address.size - std::min<size_t>(address.size, kPathAt));
  path = path.c_str();  // Up to the first null byte, if any.
  if (path.empty()) return refuse(ECONNREFUSED);
  Result<Fd> file = OpenForCaller(call.thread, AT_FDCWD, path, true);
  if (!file.ok()) return refuse(file.error().os_error);
  if (!IsInAny(PathOf(file.value().get()), setup_.writable)) return refuse(EACCES);
  SocketAddress to;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::string self = "/proc/self/fd/" + std::to_string(file.value().get());
  ::memcpy(name.sun_path, self.c_str(), self.size() + 1);
  ::memcpy(&to.bytes, &name, to.size = sizeof name);
  Connect connect{.id = call.id, .inode = InodeOf(own.socket.get())};
  (void)Finish(listener, connect, ConnectSocket(own.socket.get(), to));
}

bool Broker::Carry(const CallListener& listener, const Connect& connect) {
  ActAsAgent agent(setup_.ids);
  auto known = own_.find(connect.inode);
  if (known == own_.end()) return listener.Answer(connect.id, -ECONNABORTED) && false;
  const Own& own = known->second;
  bool proxy = IsProxy(connect.target.address) && connect.target.port == kProxyPort;
  if (own.family == AF_INET6) {
    // The gateway's sockets are of IPv4.
    int off = 0;
    (void)::setsockopt(own.socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  SocketAddress to =
      GatewaySocketAddress(own.family, proxy ? setup_.proxy_port : setup_.capture_port);
  return Finish(listener, connect, ConnectSocket(own.socket.get(), to));
}

// Tells the caller how its connection went. A connected socket is the agent's alone, also where the
// caller has ended: its peer could send descriptors into it, and they would be kept with it.
bool Broker::Finish(const CallListener& listener, const Connect& connect, int error) {
  const Own& own = own_.at(connect.inode);
  bool connected = error == 0 || error == EINPROGRESS || error == EISCONN;
  bool replaces = own.replaces;
  if (connected && replaces &&
      !listener.Replace(connect.id, connect.socket, own.socket.get(), own.close_on_exec)) {
    error = ECONNABORTED;
  }
  bool told = listener.Answer(connect.id, -error);
  if (connected) Note(connected_, connect.inode);
  if (replaces || connected) Drop(connect.inode);
  return told && connected;
}

uint64_t Broker::Keep(Own own) {
  uint64_t inode = InodeOf(own.socket.get());
  own_.insert_or_assign(inode, std::move(own));
  order_.push_back(inode);
  if (order_.size() > kOwnMax) Drop(order_.front());
  return inode;
}

void Broker::Drop(uint64_t inode) {
  own_.erase(inode);
  std::erase(order_, inode);
}

void Broker::Note(std::deque<uint64_t>& inodes, uint64_t inode) {
  inodes.push_back(inode);
  if (inodes.size() > kNotedMax) inodes.pop_front();
}

// Returns whether what listens at that port is the agent's: this loopback is the whole container's.
bool Broker::IsServer(uint16_t port) const {
  std::vector<uint64_t> found = TcpListeners(setup_.diagnostics.get(), port);
  return !found.empty() && std::all_of(found.begin(), found.end(), [&](uint64_t inode) {
    return std::find(listening_.begin(), listening_.end(), inode) != listening_.end();
  });
}

}  // namespace sandbox
