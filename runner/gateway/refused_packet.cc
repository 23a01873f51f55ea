// SPDX-License-Identifier: Apache-2.0
#include "gateway/refused_packet.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>

#include "gateway/connection.h"

namespace gateway {
namespace {

constexpr size_t kReadBytesMax = 65536;

// Takes a head of `T` and all that its length covers off the front of `rest`; `body` is behind the
// head. False if `rest` does not hold it.
template <typename T, typename Length>
bool TakeMessage(std::string_view& rest, T& head, Length T::*length, std::string_view& body) {
  if (rest.size() < sizeof(T)) return false;
  ::memcpy(&head, rest.data(), sizeof(T));
  size_t whole = head.*length;
  if (whole < sizeof(T) || whole > rest.size()) return false;
  body = rest.substr(sizeof(T), whole - sizeof(T));
  rest.remove_prefix(std::min((whole + 3) & ~size_t{3}, rest.size()));
  return true;
}

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

std::string ProtocolName(uint8_t protocol) {
  switch (protocol) {
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
      return "icmp";
    default:
      return std::to_string(int{protocol});
  }
}

std::optional<RefusedPacket> ParsePacket(std::string_view packet) {
  if (packet.empty()) return std::nullopt;
  bool v4 = ByteAt(packet, 0) >> 4 == 4;
  if (!v4 && ByteAt(packet, 0) >> 4 != 6) return std::nullopt;
  size_t head = v4 ? size_t{4} * (ByteAt(packet, 0) & 0xf) : 40;
  if (packet.size() < std::max<size_t>(head, v4 ? 20 : 40)) return std::nullopt;
  RefusedPacket refused;
  if (v4) {
    refused.destination.bytes[10] = refused.destination.bytes[11] = 0xff;
    ::memcpy(&refused.destination.bytes[12], packet.data() + 16, 4);
  } else {
    ::memcpy(refused.destination.bytes.data(), packet.data() + 24, 16);
  }
  uint8_t protocol = ByteAt(packet, v4 ? 9 : 6);
  refused.protocol = ProtocolName(protocol);
  if (protocol == IPPROTO_UDP && packet.size() >= head + 4) {
    refused.port = static_cast<uint16_t>(ByteAt(packet, head + 2) << 8 | ByteAt(packet, head + 3));
  }
  return refused;
}

record::Event RefusalEvent(const RefusedPacket& packet) {
  record::Event event;
  event.outcome = record::Event::Outcome::kDenied;
  event.host = policy::RenderAddress(packet.destination);
  event.port = packet.port;
  event.transport = packet.protocol;
  event.policy = "bypass-detect";
  event.engine = record::Engine::kNftables;
  event.reason = "only TCP leaves the sandbox";
  event.message = packet.protocol + " denied " + event.host;
  return event;
}

}  // namespace

std::vector<RefusedPacket> ParseRefusedPackets(std::string_view datagram) {
  constexpr uint16_t kPacket = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
  std::vector<RefusedPacket> packets;
  nlmsghdr head;
  std::string_view body;
  while (TakeMessage(datagram, head, &nlmsghdr::nlmsg_len, body)) {
    if (head.nlmsg_type != kPacket || body.size() < sizeof(nfgenmsg)) continue;
    body.remove_prefix(sizeof(nfgenmsg));
    nlattr attribute;
    std::string_view value;
    while (TakeMessage(body, attribute, &nlattr::nla_len, value)) {
      if ((attribute.nla_type & NLA_TYPE_MASK) != NFULA_PAYLOAD) continue;
      std::optional<RefusedPacket> packet = ParsePacket(value);
      if (packet.has_value()) packets.push_back(std::move(*packet));
    }
  }
  return packets;
}

Task<void> ServeRefusals(Services& services, Fd socket) {
  std::string bytes(kReadBytesMax, '\0');
  for (;;) {
    co_await services.loop.Readable(socket.get(), Deadline::Never());
    ssize_t n = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n <= 0) continue;  // Too many at once for its buffer: those are lost (ENOBUFS).
    std::string_view datagram = std::string_view(bytes).substr(0, static_cast<size_t>(n));
    for (const RefusedPacket& packet : ParseRefusedPackets(datagram)) {
      if (!services.Record(RefusalEvent(packet))) co_return;
    }
  }
}

}  // namespace gateway
