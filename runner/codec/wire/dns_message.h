// SPDX-License-Identifier: Apache-2.0
// DNS messages for the sandbox's name service: parses queries, renders answers (RFC 1035, 6891).
// Only addresses are ever answered, so only the question and EDNS of a query are interpreted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace codec {

// OpenShell's bound of one message, over UDP or TCP.
inline constexpr size_t kDnsMessageBytesMax = 8192;

enum class DnsRcode : uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNameError = 3,  // NXDOMAIN.
  kNotImplemented = 4,
  kRefused = 5,
  kBadVersion = 16,  // Of EDNS.
};

inline constexpr uint16_t kDnsTypeA = 1;
inline constexpr uint16_t kDnsTypeAaaa = 28;
inline constexpr uint16_t kDnsClassIn = 1;

// A query. When `fault` is not kNoError it can only be answered with that, and the name, type and
// class mean nothing.
struct DnsQuery {
  uint16_t id = 0;
  bool recursion_desired = false;
  DnsRcode fault = DnsRcode::kNoError;
  // The name in lower case, without a final dot. Empty for the root, and for a name with anything
  // but letters, digits, '-' and '_' between dots, which no policy's host is.
  std::string name;
  uint16_t type = 0;
  uint16_t query_class = 0;
  // The question as sent, which the answer repeats: clients check the case of letters.
  std::string question;
  bool has_edns = false;
  // The bytes that the client takes over UDP: 512, or what its EDNS says.
  size_t udp_bytes_max = 512;
};

// Reads one message. Fails with kInvalid for what must not be answered at all: shorter than a
// header, longer than kDnsMessageBytesMax, or itself an answer. Everything else that is wrong is
// the query's `fault`: not exactly one question, a truncated or compressed name in it, records that
// are cut off, another kind of request.
Result<DnsQuery> ParseDnsQuery(std::string_view message);

// The content of a reply. NODATA is kNoError without addresses.
struct DnsReply {
  DnsRcode rcode = DnsRcode::kNoError;
  std::vector<std::string> addresses;  // Each 4 (to A) or 16 bytes (to AAAA), in network order.
  uint32_t ttl_s = 0;
};

// Renders the answer to `query`, at most `bytes_max` long: what does not fit is left out and
// marked, so that the client asks again over TCP. `bytes_max` is at least 512. The fault of a query
// wins.
std::string RenderDnsReply(const DnsQuery& query, const DnsReply& answer, size_t bytes_max);

// Returns the first whole message of `in`, which it borrows; nullopt if more bytes are needed (at
// most kDnsMessageBytesMax + 2). Over TCP each message follows its length in two bytes. Fails with
// kInvalid above kDnsMessageBytesMax and for an empty message.
Result<std::optional<std::string_view>> FirstDnsTcpMessage(std::string_view in);
std::string RenderDnsTcpMessage(std::string_view message);  // At most 65535 bytes.

}  // namespace codec
