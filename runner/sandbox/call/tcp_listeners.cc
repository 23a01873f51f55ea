// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/tcp_listeners.h"

#include <charconv>
#include <sstream>
#include <string>

#include "base/sys.h"

namespace sandbox {
namespace {

constexpr size_t kTableBytesMax = size_t{16} << 20;

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

std::vector<uint64_t> TcpListeners(uint16_t port) {
  std::vector<uint64_t> inodes;
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    Result<std::string> table = sys::ReadFile(path, kTableBytesMax);
    if (!table.ok()) continue;
    std::vector<uint64_t> found = ParseTcpListeners(table.value(), port);
    inodes.insert(inodes.end(), found.begin(), found.end());
  }
  return inodes;
}

}  // namespace sandbox
