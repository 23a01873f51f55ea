// SPDX-License-Identifier: Apache-2.0
// DNS: every query gets an answer within its bounds that repeats the question and is not a query.
#include <cstddef>
#include <cstdint>

#include "codec/wire/dns_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  Result<std::optional<std::string_view>> framed = codec::FirstDnsTcpMessage(message);
  if (framed.ok() && framed.value().has_value()) {
    const std::string again = codec::RenderDnsTcpMessage(*framed.value());
    ENSURE(message.starts_with(again));
  }
  Result<codec::DnsQuery> parsed = codec::ParseDnsQuery(message);
  if (!parsed.ok()) return 0;
  const codec::DnsQuery& query = parsed.value();
  ENSURE(query.udp_bytes_max >= 512 && query.udp_bytes_max <= codec::kDnsMessageBytesMax);
  ENSURE(query.name.size() <= 253);

  codec::DnsReply answer;
  answer.addresses =
      std::vector<std::string>(40, query.type == codec::kDnsTypeA ? "abcd" : "abcdefghijklmnop");
  answer.ttl_s = 30;
  const std::string rendered = codec::RenderDnsReply(query, answer, query.udp_bytes_max);
  ENSURE(rendered.size() <= query.udp_bytes_max && rendered.size() >= 12);
  ENSURE(rendered.substr(0, 2) == message.substr(0, 2));
  ENSURE(rendered.substr(12).starts_with(query.question));
  ENSURE(!codec::ParseDnsQuery(rendered).ok());
  if (query.fault != codec::DnsRcode::kNoError) return 0;

  // The question alone, asked again.
  std::string plain(message.substr(0, 12));
  plain.replace(4, 8, std::string("\0\1\0\0\0\0\0\0", 8));
  Result<codec::DnsQuery> again = codec::ParseDnsQuery(plain + query.question);
  ENSURE(again.ok() && again.value().fault == codec::DnsRcode::kNoError);
  ENSURE(again.value().name == query.name && again.value().type == query.type);
  return 0;
}
