// SPDX-License-Identifier: Apache-2.0
#include "caller/socket_diagnostics.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

namespace caller {
namespace {

constexpr uint32_t kAnyCookie = ~0U;

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

bool IsMapped(const Endpoint& end) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(std::begin(kMapped), std::end(kMapped), end.address.begin());
}

// A v4 address stands in the first of the four words.
void PutAddress(const Endpoint& end, bool v4, __be32 (&words)[4]) {
  ::memcpy(words, end.address.data() + (v4 ? 12 : 0), v4 ? 4 : 16);
}

Endpoint TakeEnd(uint8_t family, const __be32 (&words)[4], __be16 port) {
  Endpoint end;
  end.port = ntohs(port);
  if (family == AF_INET) {
    end.address[10] = end.address[11] = 0xff;
    ::memcpy(end.address.data() + 12, words, 4);
  } else {
    ::memcpy(end.address.data(), words, 16);
  }
  return end;
}

}  // namespace

Result<uint64_t> AskSocketInode(int netlink, const Endpoint& local, const Endpoint& remote) {
  bool v4 = IsMapped(local) && IsMapped(remote);
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = v4 ? AF_INET : AF_INET6;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  request.body.id.idiag_sport = htons(local.port);
  request.body.id.idiag_dport = htons(remote.port);
  PutAddress(local, v4, request.body.id.idiag_src);
  PutAddress(remote, v4, request.body.id.idiag_dst);
  request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = kAnyCookie;
  // The kernel answers before send returns, so there is nothing to wait for.
  if (::send(netlink, &request, sizeof request, MSG_DONTWAIT) != sizeof request) {
    return Errno("asking for a socket");
  }
  union {
    nlmsghdr header;
    char bytes[1024];
  } reply{};
  ssize_t n = ::recv(netlink, &reply, sizeof reply, MSG_DONTWAIT);
  if (n < 0) return Errno("asking for a socket");
  auto size = static_cast<size_t>(n);
  if (reply.header.nlmsg_type == NLMSG_ERROR && size >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
    nlmsgerr error;
    ::memcpy(&error, NLMSG_DATA(&reply.header), sizeof error);
    return Errno("asking for a socket", -error.error);
  }
  inet_diag_msg found;
  if (reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || size < NLMSG_LENGTH(sizeof found)) {
    return Error{Code::kIo, "asking for a socket: unexpected message type"};
  }
  ::memcpy(&found, NLMSG_DATA(&reply.header), sizeof found);
  // If no connection matches, the kernel shows a listening socket that would take one.
  bool same = TakeEnd(found.idiag_family, found.id.idiag_src, found.id.idiag_sport) == local &&
              TakeEnd(found.idiag_family, found.id.idiag_dst, found.id.idiag_dport) == remote;
  if (!same || found.idiag_state == TCP_LISTEN) return Error{Code::kNotFound, "no such socket"};
  return uint64_t{found.idiag_inode};
}

}  // namespace caller
