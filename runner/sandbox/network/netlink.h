// SPDX-License-Identifier: Apache-2.0
// Netlink messages (RFC 3549), without a library: only four kinds are needed, once per run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// A structure of the kernel's as the bytes that it is in memory.
template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Returns `value` in network order, as netfilter's attributes are.
std::string Be16(uint16_t value);
std::string Be32(uint32_t value);
std::string Be64(uint64_t value);

// Messages one behind the other, to be sent together.
class NetlinkBatch {
 public:
  // Begins a message; what is put next belongs to it. `header` is what the protocol has between the
  // message's head and its attributes. NLM_F_REQUEST is added to `flags`.
  void Begin(uint16_t type, uint16_t flags, std::string_view header);
  void Put(uint16_t attribute, std::string_view bytes);
  void PutText(uint16_t attribute, std::string_view text);  // With the final zero.
  // Puts everything until Close inside `attribute`. Nests may nest.
  size_t Open(uint16_t attribute);
  void Close(size_t opened);

  // Returns the messages so far.
  const std::string& bytes() const { return bytes_; }

 private:
  void SetLength(size_t at, size_t length_bytes);

  std::string bytes_;
  size_t message_ = 0;  // The place where the last message begins.
  uint32_t sequence_ = 0;
};

// Opens a socket of `protocol` (NETLINK_ROUTE, NETLINK_NETFILTER) in the caller's network
// namespace.
Result<Fd> OpenNetlink(int protocol);

// Sends `batch`, of which one message asked for an acknowledgement (NLM_F_ACK), and waits for the
// kernel's answers. The first refusal among them is the Error, `doing` in front.
Status ExchangeNetlink(int socket, const NetlinkBatch& batch, std::string_view doing);

enum class NetlinkList {
  kWhole,
  kCut,      // Not all of it came, or it changed meanwhile.
  kUnknown,  // The kernel does not know it.
};
// Asks for a list (`type`, NLM_F_DUMP) and tells `take` what each message of it has behind its
// head.
NetlinkList DumpNetlink(int socket, uint16_t type, std::string_view request,
                        const std::function<void(std::string_view)>& take);

}  // namespace sandbox
