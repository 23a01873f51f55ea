// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_dns.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "gateway/async/limits.h"
#include "gateway/connection.h"
#include "gateway/names/limits.h"
#include "record/record_rate.h"

namespace gateway {
namespace {

bool RecordRefusal(Services& services, const caller::Owner& owner, const codec::DnsQuery& query,
                   std::string transport) {
  record::Event event = NewConnectionEvent(owner, record::Event::Outcome::kDenied);
  event.host = query.name;
  event.port = kDnsPort;
  event.transport = std::move(transport);
  event.policy = "-";
  event.engine = record::Engine::kDns;
  event.reason = "no endpoint of the policy matches this name";
  event.message = "DNS denied " + query.name;
  return services.Record(event);
}

bool IsRefusal(const codec::DnsQuery& query, const codec::DnsReply& answer) {
  return query.fault == codec::DnsRcode::kNoError && answer.rcode == codec::DnsRcode::kNameError &&
         !query.name.empty();
}

// One datagram: where it came from, and what says to which of our addresses it was sent. Sent back
// as it is, the latter makes that address the answer's source.
struct Datagram {
  std::array<char, codec::kDnsMessageBytesMax + 1> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> control;
  sockaddr_storage peer;
  iovec part;
  msghdr head;

  bool Receive(int socket) {
    part = {bytes.data(), bytes.size()};
    head = {};
    head.msg_name = &peer;
    head.msg_namelen = sizeof peer;
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = control.size();
    ssize_t n = ::recvmsg(socket, &head, MSG_DONTWAIT);
    part.iov_len = n < 0 ? 0 : static_cast<size_t>(n);
    return n >= 0;
  }
  std::string_view text() const { return {bytes.data(), part.iov_len}; }

  void Reply(int socket, std::string answer) {
    cmsghdr* info = CMSG_FIRSTHDR(&head);
    if (info != nullptr && info->cmsg_type == IP_PKTINFO && info->cmsg_level == IPPROTO_IP) {
      in_pktinfo addresses;
      ::memcpy(&addresses, CMSG_DATA(info), sizeof addresses);
      addresses.ipi_spec_dst = addresses.ipi_addr;
      addresses.ipi_ifindex = 0;
      ::memcpy(CMSG_DATA(info), &addresses, sizeof addresses);
    }
    part = {answer.data(), answer.size()};
    // Like any answer over UDP it may get lost.
    ::sendmsg(socket, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
};

}  // namespace

codec::DnsReply AnswerName(const policy::CompiledPolicy& policy, SyntheticPool& pool,
                           const codec::DnsQuery& query) {
  codec::DnsReply answer;
  if (query.name.empty() || !policy.NamesHost(query.name)) {
    answer.rcode = codec::DnsRcode::kNameError;
    return answer;
  }
  if (query.type != codec::kDnsTypeA || query.query_class != codec::kDnsClassIn) return answer;
  policy::Address address = pool.Assign(query.name);
  answer.addresses.emplace_back(address.bytes.begin() + 12, address.bytes.end());
  answer.ttl_s = kNameTtlSeconds;
  return answer;
}

Task<void> ServeNames(Services& services, Fd socket) {
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  auto datagram = std::make_unique<Datagram>();
  record::RecordRate rate;
  for (;;) {
    co_await services.loop.Readable(socket.get(), Deadline::Never());
    for (size_t i = 0; i < kNameQueriesAtOnceMax && datagram->Receive(socket.get()); ++i) {
      Result<codec::DnsQuery> query = codec::ParseDnsQuery(datagram->text());
      if (!query.ok()) continue;
      codec::DnsReply answer =
          AnswerName(services.policy.compiled(), services.names, query.value());
      datagram->Reply(socket.get(),
                      codec::RenderDnsReply(query.value(), answer, query.value().udp_bytes_max));
      if (!IsRefusal(query.value(), answer) || !rate.Take()) continue;
      if (!RecordRefusal(services, caller::Owner(), query.value(), "udp")) co_return;
    }
  }
}

Task<void> ServeNameStream(Services& services, const caller::Owner& owner, Stream& client) {
  for (;;) {
    Result<std::optional<std::string_view>> message = codec::FirstDnsTcpMessage(client.buffered());
    if (!message.ok()) co_return;
    if (!message.value().has_value()) {
      Result<size_t> more = co_await client.Fill(Deadline::After(kHeadTimeout));
      if (!more.ok() || more.value() == 0) co_return;
      continue;
    }
    Result<codec::DnsQuery> query = codec::ParseDnsQuery(*message.value());
    client.Consume(message.value()->size() + 2);
    if (!query.ok()) co_return;
    codec::DnsReply answer = AnswerName(services.policy.compiled(), services.names, query.value());
    if (IsRefusal(query.value(), answer)) {
      if (!RecordRefusal(services, owner, query.value(), "tcp")) co_return;
    }
    std::string text = codec::RenderDnsReply(query.value(), answer, codec::kDnsMessageBytesMax);
    Status written = co_await client.Write(codec::RenderDnsTcpMessage(text));
    if (!written.ok()) co_return;
  }
}

}  // namespace gateway
