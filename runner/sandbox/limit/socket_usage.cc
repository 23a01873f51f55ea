// SPDX-License-Identifier: Apache-2.0
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "sandbox/limit/usage.h"
#include "sandbox/network/netlink.h"

namespace sandbox {
namespace {

// A socket with nothing in it, its inode and its descriptor: about what the kernel's slabs have.
constexpr int64_t kSocketBytes = 2048;

// The kernel's figures (SK_MEMINFO_*) of one socket.
int64_t BufferBytes(std::string_view figures) {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  ::memcpy(values.data(), figures.data(), std::min(figures.size(), sizeof values));
  // The bytes that wait to be sent stand in one of the two, with TCP in both.
  return int64_t{values[SK_MEMINFO_RMEM_ALLOC]} + values[SK_MEMINFO_OPTMEM] +
         values[SK_MEMINFO_BACKLOG] +
         std::max(values[SK_MEMINFO_WMEM_ALLOC], values[SK_MEMINFO_WMEM_QUEUED]);
}

// One socket as sock_diag(7) reports it.
struct Found {
  int64_t bytes = 0;
  uint64_t inode = 0;  // 0 if it belongs to no program, since it was closed or is not accepted yet.
  uid_t user = 0;
  bool local = true;  // It cannot leave the machine.
};

// Adds the sizes in the attributes, and takes the owner from them. Data of a sender that has closed
// its end is in the reader's queue length alone.
void TakeAttributes(std::string_view attributes, bool is_unix, Found* found) {
  while (attributes.size() >= sizeof(rtattr)) {
    rtattr head;
    ::memcpy(&head, attributes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) break;
    std::string_view value = attributes.substr(sizeof head, head.rta_len - sizeof head);
    if (head.rta_type == (is_unix ? int{UNIX_DIAG_MEMINFO} : int{INET_DIAG_SKMEMINFO})) {
      found->bytes += BufferBytes(value);
    } else if (is_unix && value.size() >= sizeof(uint32_t)) {
      uint32_t number = 0;
      ::memcpy(&number, value.data(), sizeof number);
      if (head.rta_type == UNIX_DIAG_RQLEN) found->bytes += number;
      if (head.rta_type == UNIX_DIAG_UID) found->user = number;
    }
    attributes.remove_prefix(std::min<size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
  }
}

bool IsLoopback(const inet_diag_msg& head) {
  const auto* address = reinterpret_cast<const uint8_t*>(head.id.idiag_src);
  if (head.idiag_family == AF_INET) return address[0] == 127;
  const auto* v6 = reinterpret_cast<const in6_addr*>(address);
  return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && address[12] == 127);
}

// Reads one message of a list. Returns nullopt if it is too short.
std::optional<Found> Read(std::string_view one, bool is_unix) {
  Found found;
  size_t head_bytes = 0;
  if (is_unix) {
    unix_diag_msg head{};
    head_bytes = NLMSG_ALIGN(sizeof head);
    if (one.size() < head_bytes) return std::nullopt;
    ::memcpy(&head, one.data(), sizeof head);
    found.inode = head.udiag_ino;
  } else {
    inet_diag_msg head{};
    head_bytes = NLMSG_ALIGN(sizeof head);
    if (one.size() < head_bytes) return std::nullopt;
    ::memcpy(&head, one.data(), sizeof head);
    found.inode = head.idiag_inode;
    found.user = head.idiag_uid;
    found.local = IsLoopback(head);
  }
  TakeAttributes(one.substr(head_bytes), is_unix, &found);
  return found;
}

}  // namespace

int64_t SocketMeter::Measure(const std::set<uint64_t>& without) {
  if (!netlink_.valid()) return 0;
  int64_t bytes = 0;
  int list = 0;
  auto add = [&](std::string_view request, bool is_unix) {
    bool& unknown = unknown_[list++];
    if (unknown) return;
    auto take = [&](std::string_view one) {
      const std::optional<Found> found = Read(one, is_unix);
      if (!found) return;
      if (!user_) {
        bytes += kSocketBytes + found->bytes;
      } else if (found->inode == 0) {
        // The kernel does not report an owner. Every socket of the agent is on loopback.
        if (found->local) bytes += found->bytes;
      } else if (found->user == *user_ && !without.contains(found->inode)) {
        bytes += kSocketBytes + found->bytes;
      }
    };
    unknown =
        DumpNetlink(netlink_.get(), SOCK_DIAG_BY_FAMILY, request, take) == NetlinkList::kUnknown;
  };
  unix_diag_req local{};
  local.sdiag_family = AF_UNIX;
  local.udiag_states = ~0U;
  local.udiag_show = UDIAG_SHOW_MEMINFO | UDIAG_SHOW_RQLEN | UDIAG_SHOW_UID;
  add(BytesOf(local), true);
  for (uint8_t family : {AF_INET, AF_INET6}) {
    for (uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
      inet_diag_req_v2 internet{};
      internet.sdiag_family = family;
      internet.sdiag_protocol = protocol;
      internet.idiag_states = ~0U;
      internet.idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1);
      add(BytesOf(internet), false);
    }
  }
  return bytes;
}

}  // namespace sandbox
