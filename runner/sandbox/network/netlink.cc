// SPDX-License-Identifier: Apache-2.0
#include "sandbox/network/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include <array>

namespace sandbox {
namespace {

constexpr size_t kAlign = 4;
constexpr size_t kAnswerBytesMax = 16384;
constexpr size_t kListBytesMax = 65536;

std::string BigEndian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i > 0; --i) text += static_cast<char>((value >> (8 * (i - 1))) & 0xff);
  return text;
}

}  // namespace

std::string Be16(uint16_t value) { return BigEndian(value, 2); }
std::string Be32(uint32_t value) { return BigEndian(value, 4); }
std::string Be64(uint64_t value) { return BigEndian(value, 8); }

void NetlinkBatch::SetLength(size_t at, size_t length_bytes) {
  size_t length = bytes_.size() - at;
  ENSURE(length_bytes == 4 || length <= UINT16_MAX);
  ::memcpy(&bytes_[at], &length, length_bytes);  // Little-endian or not: see the assertion below.
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

void NetlinkBatch::Begin(uint16_t type, uint16_t flags, std::string_view header) {
  message_ = bytes_.size();
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  head.nlmsg_seq = ++sequence_;
  bytes_.append(BytesOf(head));
  bytes_.append(header);
  SetLength(message_, sizeof head.nlmsg_len);
}

void NetlinkBatch::Put(uint16_t attribute, std::string_view bytes) {
  size_t at = Open(attribute);
  bytes_.append(bytes);
  SetLength(at, sizeof nlattr::nla_len);
  bytes_.append((kAlign - bytes_.size() % kAlign) % kAlign, '\0');
  SetLength(message_, sizeof nlmsghdr::nlmsg_len);
}

void NetlinkBatch::PutText(uint16_t attribute, std::string_view text) {
  Put(attribute, std::string(text) + '\0');
}

size_t NetlinkBatch::Open(uint16_t attribute) {
  size_t at = bytes_.size();
  nlattr head{sizeof(nlattr), attribute};
  bytes_.append(BytesOf(head));
  SetLength(message_, sizeof nlmsghdr::nlmsg_len);
  return at;
}

void NetlinkBatch::Close(size_t opened) {
  SetLength(opened, sizeof nlattr::nla_len);
  bytes_[opened + 3] = static_cast<char>(bytes_[opened + 3] | (NLA_F_NESTED >> 8));
}

Result<Fd> OpenNetlink(int protocol) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket.valid()) return Errno("socket(AF_NETLINK)");
  return socket;
}

Status ExchangeNetlink(int socket, const NetlinkBatch& batch, std::string_view doing) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = ::sendto(socket, batch.bytes().data(), batch.bytes().size(), 0,
                          reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) return Errno(doing);
  // The kernel has carried it all out by now, and answered.
  bool acknowledged = false;
  alignas(nlmsghdr) std::array<char, kAnswerBytesMax> answers;
  for (;;) {
    ssize_t n = ::recv(socket, answers.data(), answers.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return Errno(doing);
    size_t left = static_cast<size_t>(n);
    for (const nlmsghdr* head = reinterpret_cast<const nlmsghdr*>(answers.data());
         left >= sizeof *head && head->nlmsg_len >= sizeof *head && head->nlmsg_len <= left;) {
      if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_len >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
        nlmsgerr answer;
        ::memcpy(&answer, NLMSG_DATA(head), sizeof answer);
        if (answer.error != 0) return Errno(doing, -answer.error);
        acknowledged = true;
      }
      size_t step = std::min(static_cast<size_t>(NLMSG_ALIGN(head->nlmsg_len)), left);
      left -= step;
      head = reinterpret_cast<const nlmsghdr*>(reinterpret_cast<const char*>(head) + step);
    }
  }
  if (!acknowledged) return Error{Code::kIo, std::string(doing) + ": the kernel did not answer"};
  return Ok();
}

NetlinkList DumpNetlink(int socket, uint16_t type, std::string_view request,
                        const std::function<void(std::string_view)>& take) {
  NetlinkBatch batch;
  batch.Begin(type, NLM_F_DUMP, request);
  if (::send(socket, batch.bytes().data(), batch.bytes().size(), MSG_DONTWAIT) < 0) {
    return NetlinkList::kCut;
  }
  alignas(nlmsghdr) std::array<char, kListBytesMax> answers;
  NetlinkList list = NetlinkList::kWhole;
  for (;;) {
    // The kernel fills in the next part while it is asked for this one.
    ssize_t n = ::recv(socket, answers.data(), answers.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return NetlinkList::kCut;
    std::string_view rest(answers.data(), static_cast<size_t>(n));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr head;
      ::memcpy(&head, rest.data(), sizeof head);
      if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > rest.size()) return NetlinkList::kCut;
      if ((head.nlmsg_flags & NLM_F_DUMP_INTR) != 0) list = NetlinkList::kCut;
      if (head.nlmsg_type == NLMSG_DONE) return list;
      if (head.nlmsg_type == NLMSG_ERROR) return NetlinkList::kUnknown;
      take(rest.substr(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN));
      rest.remove_prefix(std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), rest.size()));
    }
  }
}

}  // namespace sandbox
