// SPDX-License-Identifier: Apache-2.0
#include "sandbox/network/nf_tables.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <string_view>

#include "sandbox/network/netlink.h"

namespace sandbox {
namespace {

constexpr char kTable[] = "agentic_ci";
constexpr char kArriving[] = "arriving";
constexpr char kLeaving[] = "leaving";
// Before anything else looks at the packet; nft's "mangle" and "filter".
constexpr int32_t kArrivingPriority = -150;
constexpr int32_t kLeavingPriority = 0;

constexpr uint32_t kDestination4 = 16;  // The offset of the address in the IP header.
constexpr uint32_t kDestination6 = 24;
constexpr uint32_t kSourcePort = 0;  // The offset in the head of TCP and UDP.
constexpr uint32_t kDestinationPort = 2;
constexpr uint64_t kLogRate = 5;  // Packets a second, and at once.
constexpr uint32_t kLogBurst = 10;
constexpr uint32_t kLoggedBytes = 128;  // Enough for any IP header and the ports behind it.

constexpr std::string_view kLoopback4("\x7f\0\0\1", 4);
constexpr std::string_view kLoopback6("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);

uint16_t MessageType(uint8_t message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

std::string Head(uint8_t family, uint16_t resource) {
  return std::string{static_cast<char>(family), NFNETLINK_V0} + Be16(resource);
}

// One rule: expressions in the order the kernel evaluates them. What does not match ends it.
class Rule {
 public:
  Rule(NetlinkBatch& batch, const char* chain, uint16_t flags = 0) : batch_(batch) {
    batch_.Begin(MessageType(NFT_MSG_NEWRULE),
                 static_cast<uint16_t>(flags | NLM_F_CREATE | NLM_F_APPEND), Head(NFPROTO_INET, 0));
    batch_.PutText(NFTA_RULE_TABLE, kTable);
    batch_.PutText(NFTA_RULE_CHAIN, chain);
    expressions_ = batch_.Open(NFTA_RULE_EXPRESSIONS);
  }
  ~Rule() { batch_.Close(expressions_); }
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  Rule& Meta(uint32_t key, uint8_t value) {
    Expression meta(*this, "meta");
    batch_.Put(NFTA_META_KEY, Be32(key));
    batch_.Put(NFTA_META_DREG, Be32(NFT_REG_1));
    meta.End();
    return Equals(std::string(1, static_cast<char>(value)));
  }
  Rule& Family(uint8_t family) { return Meta(NFT_META_NFPROTO, family); }
  Rule& Protocol(uint8_t protocol) { return Meta(NFT_META_L4PROTO, protocol); }

  Rule& Payload(uint32_t base, uint32_t offset, std::string_view value) {
    Expression payload(*this, "payload");
    batch_.Put(NFTA_PAYLOAD_DREG, Be32(NFT_REG_1));
    batch_.Put(NFTA_PAYLOAD_BASE, Be32(base));
    batch_.Put(NFTA_PAYLOAD_OFFSET, Be32(offset));
    batch_.Put(NFTA_PAYLOAD_LEN, Be32(static_cast<uint32_t>(value.size())));
    payload.End();
    return Equals(value);
  }
  Rule& ToPort(uint16_t port) {
    return Payload(NFT_PAYLOAD_TRANSPORT_HEADER, kDestinationPort, Be16(port));
  }
  Rule& FromPort(uint16_t port) {
    return Payload(NFT_PAYLOAD_TRANSPORT_HEADER, kSourcePort, Be16(port));
  }
  Rule& ToLoopback4() {
    return Family(NFPROTO_IPV4).Payload(NFT_PAYLOAD_NETWORK_HEADER, kDestination4, "\x7f");
  }
  Rule& ToAddress6(std::string_view address) {
    return Family(NFPROTO_IPV6).Payload(NFT_PAYLOAD_NETWORK_HEADER, kDestination6, address);
  }

  void Accept() {
    Expression immediate(*this, "immediate");
    batch_.Put(NFTA_IMMEDIATE_DREG, Be32(NFT_REG_VERDICT));
    size_t data = batch_.Open(NFTA_IMMEDIATE_DATA);
    size_t verdict = batch_.Open(NFTA_DATA_VERDICT);
    batch_.Put(NFTA_VERDICT_CODE, Be32(NF_ACCEPT));
    batch_.Close(verdict);
    batch_.Close(data);
    immediate.End();
  }
  void HandTo(uint8_t family, std::string_view address, uint16_t port) {
    Load(NFT_REG_1, address);
    Load(NFT_REG_2, Be16(port));
    Expression tproxy(*this, "tproxy");
    batch_.Put(NFTA_TPROXY_FAMILY, Be32(family));
    batch_.Put(NFTA_TPROXY_REG_ADDR, Be32(NFT_REG_1));
    batch_.Put(NFTA_TPROXY_REG_PORT, Be32(NFT_REG_2));
    tproxy.End();
  }
  void Log(uint16_t group) {
    Expression limit(*this, "limit");
    batch_.Put(NFTA_LIMIT_RATE, Be64(kLogRate));
    batch_.Put(NFTA_LIMIT_UNIT, Be64(1));
    batch_.Put(NFTA_LIMIT_BURST, Be32(kLogBurst));
    limit.End();
    Expression log(*this, "log");
    batch_.Put(NFTA_LOG_GROUP, Be16(group));
    batch_.Put(NFTA_LOG_SNAPLEN, Be32(kLoggedBytes));
    log.End();
  }
  void Refuse() {
    Expression reject(*this, "reject");
    batch_.Put(NFTA_REJECT_TYPE, Be32(NFT_REJECT_ICMPX_UNREACH));
    batch_.Put(NFTA_REJECT_ICMP_CODE, std::string(1, NFT_REJECT_ICMPX_PORT_UNREACH));
    reject.End();
  }

 private:
  // One element of the list: a name, and attributes until End.
  class Expression {
   public:
    Expression(Rule& rule, const char* name) : batch_(rule.batch_) {
      element_ = batch_.Open(NFTA_LIST_ELEM);
      batch_.PutText(NFTA_EXPR_NAME, name);
      data_ = batch_.Open(NFTA_EXPR_DATA);
    }
    void End() {
      batch_.Close(data_);
      batch_.Close(element_);
    }

   private:
    NetlinkBatch& batch_;
    size_t element_ = 0;
    size_t data_ = 0;
  };

  Rule& Equals(std::string_view value) {
    Expression compare(*this, "cmp");
    batch_.Put(NFTA_CMP_SREG, Be32(NFT_REG_1));
    batch_.Put(NFTA_CMP_OP, Be32(NFT_CMP_EQ));
    PutValue(NFTA_CMP_DATA, value);
    compare.End();
    return *this;
  }
  void Load(uint32_t destination, std::string_view value) {
    Expression immediate(*this, "immediate");
    batch_.Put(NFTA_IMMEDIATE_DREG, Be32(destination));
    PutValue(NFTA_IMMEDIATE_DATA, value);
    immediate.End();
  }
  void PutValue(uint16_t attribute, std::string_view value) {
    size_t data = batch_.Open(attribute);
    batch_.Put(NFTA_DATA_VALUE, value);
    batch_.Close(data);
  }

  NetlinkBatch& batch_;
  size_t expressions_ = 0;
};

void AddChain(NetlinkBatch& batch, const char* name, uint32_t hook, int32_t priority) {
  batch.Begin(MessageType(NFT_MSG_NEWCHAIN), NLM_F_CREATE, Head(NFPROTO_INET, 0));
  batch.PutText(NFTA_CHAIN_TABLE, kTable);
  batch.PutText(NFTA_CHAIN_NAME, name);
  size_t hooked = batch.Open(NFTA_CHAIN_HOOK);
  batch.Put(NFTA_HOOK_HOOKNUM, Be32(hook));
  batch.Put(NFTA_HOOK_PRIORITY, Be32(static_cast<uint32_t>(priority)));
  batch.Close(hooked);
  batch.Put(NFTA_CHAIN_POLICY, Be32(NF_ACCEPT));
  batch.PutText(NFTA_CHAIN_TYPE, "filter");
}

}  // namespace

Status InstallFilter(const FilterRequest& request) {
  in_addr proxy{};
  ENSURE(::inet_pton(AF_INET, request.proxy_address.c_str(), &proxy) == 1);
  std::string_view proxy_bytes(reinterpret_cast<const char*>(&proxy), sizeof proxy);
  in6_addr own6{};
  ENSURE(::inet_pton(AF_INET6, request.own_address6.c_str(), &own6) == 1);
  std::string_view own6_bytes(reinterpret_cast<const char*>(&own6), sizeof own6);
  Result<Fd> socket = OpenNetlink(NETLINK_NETFILTER);
  if (!socket.ok()) {
    return Error{Code::kUnsupported, "nf_tables: " + std::move(socket).error().what};
  }

  NetlinkBatch batch;
  batch.Begin(NFNL_MSG_BATCH_BEGIN, 0, Head(AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
  batch.Begin(MessageType(NFT_MSG_NEWTABLE), NLM_F_CREATE, Head(NFPROTO_INET, 0));
  batch.PutText(NFTA_TABLE_NAME, kTable);

  // Locally made packets pass "leaving", come back over loopback and pass "arriving".
  AddChain(batch, kArriving, NF_INET_PRE_ROUTING, kArrivingPriority);
  Rule(batch, kArriving).ToLoopback4().Accept();
  Rule(batch, kArriving).ToAddress6(kLoopback6).Accept();
  Rule(batch, kArriving).ToAddress6(own6_bytes).Accept();
  Rule(batch, kArriving)
      .Family(NFPROTO_IPV4)
      .Payload(NFT_PAYLOAD_NETWORK_HEADER, kDestination4, proxy_bytes)
      .Protocol(IPPROTO_TCP)
      .ToPort(request.proxy_port)
      .Accept();
  Rule(batch, kArriving)
      .Family(NFPROTO_IPV4)
      .Protocol(IPPROTO_TCP)
      .HandTo(NFPROTO_IPV4, kLoopback4, request.capture_port);
  Rule(batch, kArriving)
      .Family(NFPROTO_IPV6)
      .Protocol(IPPROTO_TCP)
      .HandTo(NFPROTO_IPV6, kLoopback6, request.capture_port);

  AddChain(batch, kLeaving, NF_INET_LOCAL_OUT, kLeavingPriority);
  Rule(batch, kLeaving).ToLoopback4().Accept();
  Rule(batch, kLeaving).ToAddress6(kLoopback6).Accept();
  Rule(batch, kLeaving).ToAddress6(own6_bytes).Accept();
  Rule(batch, kLeaving).Protocol(IPPROTO_TCP).Accept();
  Rule(batch, kLeaving).Protocol(IPPROTO_UDP).ToPort(kDnsPort).Accept();
  // The answers, to clients that do not ask from loopback. No program inside may bind that port.
  Rule(batch, kLeaving).Protocol(IPPROTO_UDP).FromPort(kDnsPort).Accept();
  Rule(batch, kLeaving).Log(request.log_group);
  // The caller of sendto(2) gets EPERM, and a process that waits for an answer gets an ICMP error.
  Rule(batch, kLeaving, NLM_F_ACK).Refuse();
  batch.Begin(NFNL_MSG_BATCH_END, 0, Head(AF_UNSPEC, NFNL_SUBSYS_NFTABLES));

  Status installed = ExchangeNetlink(socket.value().get(), batch, "nf_tables");
  if (!installed.ok()) return Error{Code::kUnsupported, std::move(installed).error().what};
  return Ok();
}

Result<Fd> OpenPacketLog(uint16_t group) {
  Fd socket = TRY(OpenNetlink(NETLINK_NETFILTER));
  constexpr uint16_t kConfigure = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
  NetlinkBatch bind;
  bind.Begin(kConfigure, NLM_F_ACK, Head(AF_UNSPEC, group));
  bind.Put(NFULA_CFG_CMD, std::string(1, NFULNL_CFG_CMD_BIND));
  TRY(ExchangeNetlink(socket.get(), bind, "nfnetlink_log"));
  NetlinkBatch mode;
  mode.Begin(kConfigure, NLM_F_ACK, Head(AF_UNSPEC, group));
  // struct nfulnl_msg_config_mode.
  mode.Put(NFULA_CFG_MODE, Be32(kLoggedBytes) + std::string{NFULNL_COPY_PACKET, '\0'});
  mode.Put(NFULA_CFG_QTHRESH, Be32(1));  // Each at once.
  TRY(ExchangeNetlink(socket.get(), mode, "nfnetlink_log"));
  return socket;
}

}  // namespace sandbox
