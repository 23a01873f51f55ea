// SPDX-License-Identifier: Apache-2.0
#include "gateway/refused_packet.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <catch2/catch.hpp>

namespace gateway {
namespace {

std::string Little(uint32_t value, size_t bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

std::string Attribute(uint16_t type, const std::string& value) {
  std::string text = Little(static_cast<uint32_t>(value.size() + 4), 2) + Little(type, 2) + value;
  return text + std::string((4 - text.size() % 4) % 4, '\0');
}

// Renders a message as the kernel sends it: a prefix and a mark it may add, then the packet.
std::string Message(const std::string& packet) {
  std::string body = std::string("\2\0\0\1", 4) + Attribute(NFULA_PREFIX, std::string(1, '\0')) +
                     Attribute(NFULA_PAYLOAD, packet);
  return Little(static_cast<uint32_t>(body.size() + 16), 4) +
         Little(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET, 2) + std::string(10, '\0') + body;
}

std::string Packet4(char protocol, const std::string& behind, char first = 0x45) {
  std::string options(static_cast<size_t>((first & 0xf) - 5) * 4, '\0');
  return std::string(1, first) + std::string(8, '\0') + protocol + std::string(6, '\0') +
         std::string("\x08\x08\x04\x04", 4) + options + behind;
}

std::string Packet6(char protocol, const std::string& behind) {
  std::string address = std::string("\x20\x01\x0d\xb8", 4) + std::string(11, '\0') + '\5';
  return std::string("\x60\0\0\0\0\0", 6) + protocol + '\x40' + std::string(16, '\0') + address +
         behind;
}

const std::string kPorts("\x10\0\x01\xbb\0\0\0\0", 8);

TEST_CASE("A refused packet tells where it was to go") {
  std::vector<RefusedPacket> packets = ParseRefusedPackets(
      Message(Packet4(17, kPorts)) + Message(Packet6(17, kPorts)) + Message(Packet4(1, kPorts)));
  REQUIRE(packets.size() == 3);
  CHECK(policy::RenderAddress(packets[0].destination) == "8.8.4.4");
  CHECK(packets[0].port == 443);
  CHECK(packets[0].protocol == "udp");
  CHECK(policy::RenderAddress(packets[1].destination) == "2001:db8::5");
  CHECK(packets[1].port == 443);
  CHECK(packets[2].protocol == "icmp");
  CHECK(packets[2].port == 0);
}

TEST_CASE("Options of the IP header are stepped over, other protocols have their number") {
  std::vector<RefusedPacket> packets =
      ParseRefusedPackets(Message(Packet4(17, kPorts, 0x47)) + Message(Packet4('\x84', kPorts)));
  REQUIRE(packets.size() == 2);
  CHECK(packets[0].port == 443);
  CHECK(packets[1].protocol == "132");
}

TEST_CASE("What is cut off is passed over, and nothing is read behind its end") {
  std::string whole = Message(Packet4(17, kPorts));
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(ParseRefusedPackets(std::string_view(whole).substr(0, size)).empty());
  }
  CHECK(ParseRefusedPackets(Message("")).empty());
  CHECK(ParseRefusedPackets(Message(std::string(60, '\x15'))).empty());
  CHECK(ParseRefusedPackets(Message(std::string(12, '\x45'))).empty());
  // A head that says it is longer than the packet, and a packet without ports.
  CHECK(ParseRefusedPackets(Message(Packet4(17, "").replace(0, 1, "\x4f"))).empty());
  CHECK(ParseRefusedPackets(Message(Packet4(17, "\1\2\3"))).at(0).port == 0);
}

}  // namespace
}  // namespace gateway
