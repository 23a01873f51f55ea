// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
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
  // What waits to be sent stands in one of the two, with TCP in both.
  return int64_t{values[SK_MEMINFO_RMEM_ALLOC]} + values[SK_MEMINFO_OPTMEM] +
         values[SK_MEMINFO_BACKLOG] +
         std::max(values[SK_MEMINFO_WMEM_ALLOC], values[SK_MEMINFO_WMEM_QUEUED]);
}

// One answer's attributes. What a closed sender left in a queue only its reader's length shows.
int64_t AnswerBytes(std::string_view attributes, bool is_unix) {
  int64_t bytes = kSocketBytes;
  while (attributes.size() >= sizeof(rtattr)) {
    rtattr head;
    ::memcpy(&head, attributes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) break;
    std::string_view value = attributes.substr(sizeof head, head.rta_len - sizeof head);
    if (head.rta_type == (is_unix ? int{UNIX_DIAG_MEMINFO} : int{INET_DIAG_SKMEMINFO})) {
      bytes += BufferBytes(value);
    } else if (is_unix && head.rta_type == UNIX_DIAG_RQLEN && value.size() >= 4) {
      uint32_t queued = 0;
      ::memcpy(&queued, value.data(), sizeof queued);
      bytes += queued;
    }
    attributes.remove_prefix(std::min<size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
  }
  return bytes;
}

// Sums up one list; nothing when the kernel does not know it.
std::optional<int64_t> SumOf(int netlink, std::string_view request, size_t head_bytes,
                             bool is_unix) {
  int64_t bytes = 0;
  auto take = [&](std::string_view one) {
    const size_t attributes = NLMSG_ALIGN(head_bytes);
    if (one.size() >= attributes) bytes += AnswerBytes(one.substr(attributes), is_unix);
  };
  const bool unknown =
      DumpNetlink(netlink, SOCK_DIAG_BY_FAMILY, request, take) == NetlinkList::kUnknown;
  return unknown ? std::nullopt : std::optional(bytes);
}

}  // namespace

int64_t SocketMeter::Measure() {
  if (!netlink_.valid()) return 0;
  int64_t bytes = 0;
  int list = 0;
  auto add = [&](std::string_view request, size_t head_bytes, bool is_unix) {
    bool& unknown = unknown_[list++];
    if (unknown) return;
    std::optional<int64_t> sum = SumOf(netlink_.get(), request, head_bytes, is_unix);
    unknown = !sum.has_value();
    bytes += sum.value_or(0);
  };
  unix_diag_req local{};
  local.sdiag_family = AF_UNIX;
  local.udiag_states = ~0U;
  local.udiag_show = UDIAG_SHOW_MEMINFO | UDIAG_SHOW_RQLEN;
  add(BytesOf(local), sizeof(unix_diag_msg), true);
  for (uint8_t family : {AF_INET, AF_INET6}) {
    for (uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
      inet_diag_req_v2 internet{};
      internet.sdiag_family = family;
      internet.sdiag_protocol = protocol;
      internet.idiag_states = ~0U;
      internet.idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1);
      add(BytesOf(internet), sizeof(inet_diag_msg), false);
    }
  }
  return bytes;
}

}  // namespace sandbox
