// SPDX-License-Identifier: Apache-2.0
// The sandbox's processes as seen by their own user: root in a container may lack the right to
// inspect another user's processes, while that user has it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// The user and group of the agent's processes, on the host.
struct AgentIds {
  uid_t uid = 0;
  gid_t gid = 0;
  bool others = false;  // Not this process's own: it is root.
};

// While it lives, this thread acts with the agent's ids: what it is refused, the agent would be.
class ActAsAgent {
 public:
  explicit ActAsAgent(const AgentIds& ids);
  ActAsAgent(const ActAsAgent&) = delete;
  ActAsAgent& operator=(const ActAsAgent&) = delete;
  ~ActAsAgent();

 private:
  bool changed_ = false;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
};

// Returns `size` bytes of the memory of `thread`; nullopt if not all of them can be read.
std::optional<std::string> ReadMemory(pid_t thread, uint64_t address, size_t size);
// Returns the text that ends with a null byte; nullopt if that is not within `bytes_max`.
std::optional<std::string> ReadText(pid_t thread, uint64_t address, size_t bytes_max);

// Returns the number that /proc/THREAD/status has after `name` and a colon.
std::optional<pid_t> StatusNumber(pid_t thread, const std::string& name);

// Returns the inode of the socket that is the thread's descriptor `fd`; nullopt if it is something
// else.
std::optional<uint64_t> SocketInode(pid_t thread, int fd);

// Returns the protocol of the socket that is the thread's descriptor `fd`, as the kernel names it:
// "TCP", "TCPv6"; empty if it is something else.
std::string SocketProtocol(pid_t thread, int fd);
// Its file status flags, O_NONBLOCK and O_CLOEXEC among them.
std::optional<int> DescriptorFlags(pid_t thread, int fd);

// Opens with O_PATH what stands at `path`, for a thread that calls with it and with `directory`. A
// magic link of /proc other than /proc/self/fd/N leads nowhere. The Error has the errno to give to
// the caller.
Result<Fd> OpenForCaller(pid_t thread, int directory, const std::string& path, bool follow);
bool IsInAny(const std::string& path, const std::vector<std::string>& directories);

// Returns the absolute path that /proc tells of `fd` (of this process); empty if it has none.
std::string PathOf(int fd);

}  // namespace sandbox
