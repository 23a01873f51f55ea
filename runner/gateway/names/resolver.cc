// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/resolver.h"

#include <ares.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "gateway/names/limits.h"

namespace gateway {
namespace {

// Tries that fit into kResolveTimeout with the usual two servers: 2 * (2 s + 4 s).
constexpr int kTryTimeout_ms = 2000;
constexpr int kTries = 2;
// c-ares tells when it wants to be called; a new query may want it sooner than the pump knows.
constexpr milliseconds kPumpInterval{200};

// c-ares opened, changed or is closing a socket.
void WatchSocket(void* data, int socket, int readable, int writable) {
  int epoll = static_cast<Fd*>(data)->get();
  if (readable == 0 && writable == 0) {
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
    return;
  }
  epoll_event event{};
  event.data.fd = socket;
  if (readable != 0) event.events |= EPOLLIN;
  if (writable != 0) event.events |= EPOLLOUT;
  if (::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) != 0) {
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
  }
}

policy::Address MappedV4(const in_addr& v4) {
  policy::Address address;
  address.bytes[10] = address.bytes[11] = 0xff;
  ::memcpy(&address.bytes[12], &v4, 4);
  return address;
}

// RFC 6761, 6.3: these names mean this machine, and no name server is asked about them. So they are
// refused for where they lead, on every machine alike.
bool IsLoopbackName(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");
}

std::vector<policy::Address> Collect(const ares_addrinfo* info) {
  std::vector<policy::Address> addresses;
  for (const ares_addrinfo_node* node = info->nodes; node != nullptr; node = node->ai_next) {
    policy::Address address;
    if (node->ai_family == AF_INET) {
      sockaddr_in v4;
      ::memcpy(&v4, node->ai_addr, sizeof v4);
      address = MappedV4(v4.sin_addr);
    } else if (node->ai_family == AF_INET6) {
      sockaddr_in6 v6;
      ::memcpy(&v6, node->ai_addr, sizeof v6);
      ::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    } else {
      continue;
    }
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

std::vector<policy::Address> LoopbackAddresses() {
  policy::Address v6;
  v6.bytes[15] = 1;
  return {MappedV4(in_addr{htonl(INADDR_LOOPBACK)}), v6};
}

// Shared by a Resolve and the callback of c-ares, which comes in any case; the later one frees it.
struct Resolver::Lookup {
  explicit Lookup(EventLoop& loop) : finished(loop) {}

  Signal finished;
  int status = ARES_ETIMEOUT;
  std::vector<policy::Address> addresses;
  bool answered = false;   // c-ares is done with it.
  bool abandoned = false;  // There is no waiter any more.

  static void OnAnswer(void* data, int status, int /*timeouts*/, ares_addrinfo* info) {
    auto* lookup = static_cast<Lookup*>(data);
    if (lookup->abandoned) {
      delete lookup;
    } else {
      lookup->status = status;
      if (status == ARES_SUCCESS && info != nullptr) lookup->addresses = Collect(info);
      lookup->answered = true;
      lookup->finished.Set();
    }
    if (info != nullptr) ares_freeaddrinfo(info);
  }
};

Result<std::unique_ptr<Resolver>> Resolver::Open(EventLoop& loop, HostsFile hosts) {
  int raw = ::epoll_create1(EPOLL_CLOEXEC);
  if (raw < 0) return Errno("epoll_create1");
  std::unique_ptr<Resolver> resolver(new Resolver(loop, std::move(hosts), Fd(raw)));
  if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
    return Error{Code::kIo, "c-ares does not start"};
  }
  ares_options options{};
  char dns_only[] = "b";
  options.timeout = kTryTimeout_ms;
  options.tries = kTries;
  options.lookups = dns_only;  // The hosts file is ours to read, and to judge.
  options.sock_state_cb = WatchSocket;
  options.sock_state_cb_data = &resolver->epoll_;
  int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
  int status = ares_init_options(&resolver->channel_, &options, mask);
  if (status != ARES_SUCCESS) {
    return Error{Code::kIo, std::string("reading resolv.conf: ") + ares_strerror(status)};
  }
  return resolver;
}

Resolver::~Resolver() {
  if (channel_ != nullptr) ares_destroy(channel_);
  loop_.Forget(epoll_.get());
}

Task<Result<std::vector<policy::Address>>> Resolver::Resolve(std::string host) {
  std::optional<policy::Address> literal = policy::ParseAddress(host);
  if (literal.has_value()) co_return std::vector<policy::Address>{*literal};
  if (IsLoopbackName(host)) co_return LoopbackAddresses();
  auto known = hosts_.find(host);
  if (known != hosts_.end()) co_return known->second;

  auto* lookup = new Lookup(loop_);
  ++waiting_;
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  std::string absolute = host.find('.') != std::string::npos ? host + "." : host;
  ares_getaddrinfo(channel_, absolute.c_str(), nullptr, &hints, Lookup::OnAnswer, lookup);
  if (!pumping_) {
    pumping_ = true;
    loop_.Spawn(Pump());
  }
  co_await lookup->finished.Within(Deadline::After(kResolveTimeout));
  --waiting_;
  int status = lookup->status;
  std::vector<policy::Address> addresses = std::move(lookup->addresses);
  if (lookup->answered) {
    delete lookup;
  } else {
    lookup->abandoned = true;
  }
  if (addresses.size() > kAddressesMax) addresses.resize(kAddressesMax);
  if (!addresses.empty()) co_return addresses;
  bool none = status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS ||
              status == ARES_EBADNAME;
  std::string why = none ? "no address" : ares_strerror(status);
  co_return Error{none ? Code::kNotFound : Code::kTemporary, "resolving " + host + ": " + why};
}

void Resolver::ServeSockets() {
  std::array<epoll_event, 16> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    bool readable = (event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
    bool writable = (event.events & EPOLLOUT) != 0;
    ares_process_fd(channel_, readable ? event.data.fd : ARES_SOCKET_BAD,
                    writable ? event.data.fd : ARES_SOCKET_BAD);
  }
  if (count <= 0) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // Only timeouts.
}

Task<void> Resolver::Pump() {
  while (waiting_ > 0) {
    co_await loop_.Readable(epoll_.get(), Deadline::After(kPumpInterval));
    ServeSockets();
  }
  pumping_ = false;
}

}  // namespace gateway
