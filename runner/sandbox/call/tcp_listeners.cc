// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/tcp_listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <charconv>
#include <sstream>
#include <string>

#include "base/sys.h"
#include "sandbox/network/netlink.h"

namespace sandbox {
namespace {

constexpr size_t kTableBytesMax = size_t{16} << 20;

// Returns false if not all that listens is known: what is left out may be another program's.
bool AskListeners(int diagnostics, uint16_t port, std::vector<uint64_t>* inodes) {
  for (uint8_t family : {AF_INET, AF_INET6}) {
    inet_diag_req_v2 request{};
    request.sdiag_family = family;
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_states = 1U << TCP_LISTEN;
    auto take = [&](std::string_view one) {
      inet_diag_msg found{};
      if (one.size() < sizeof found) return;
      ::memcpy(&found, one.data(), sizeof found);
      if (ntohs(found.id.idiag_sport) == port) inodes->push_back(found.idiag_inode);
    };
    const NetlinkList list = DumpNetlink(diagnostics, SOCK_DIAG_BY_FAMILY, BytesOf(request), take);
    if (list != NetlinkList::kWhole) return false;
  }
  return true;
}

}  // namespace

std::vector<uint64_t> ParseTcpListeners(std::string_view table, uint16_t port) {
  constexpr int kSkipped = 5;  // Queues, timer, retransmits, user, timeout.
  std::vector<uint64_t> inodes;
  std::istringstream lines{std::string(table)};
  std::string line;
  std::getline(lines, line);  // The columns' names.
  while (std::getline(lines, line)) {
    std::istringstream columns(line);
    std::string number, local, remote, state, skipped;
    columns >> number >> local >> remote >> state;
    for (int i = 0; i < kSkipped; ++i) columns >> skipped;
    uint64_t inode = 0;
    columns >> inode;
    uint16_t found = 0;
    size_t colon = local.find(':');
    if (!columns || state != "0A" || colon == std::string::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
    if (found == port) inodes.push_back(inode);
  }
  return inodes;
}

std::vector<uint64_t> TcpListeners(int diagnostics, uint16_t port) {
  std::vector<uint64_t> inodes;
  if (diagnostics >= 0 && AskListeners(diagnostics, port, &inodes)) return inodes;
  inodes.clear();
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    Result<std::string> table = sys::ReadFile(path, kTableBytesMax);
    if (!table.ok()) continue;
    std::vector<uint64_t> found = ParseTcpListeners(table.value(), port);
    inodes.insert(inodes.end(), found.begin(), found.end());
  }
  return inodes;
}

}  // namespace sandbox
