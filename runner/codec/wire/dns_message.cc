// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/dns_message.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/data/byte_reader.h"

namespace codec {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kNameBytesMax = 255;
constexpr uint16_t kTypeOpt = 41;
// Over UDP we never send more: what fits into an IPv6 packet that nothing fragments (RFC 9715).
constexpr size_t kUdpBytesMax = 1232;
constexpr size_t kUdpBytesMin = 512;

constexpr uint16_t kFlagResponse = 0x8000;
constexpr uint16_t kFlagTruncated = 0x0200;
constexpr uint16_t kFlagRecursionDesired = 0x0100;
// glibc takes an empty answer without this for a server that does not know, and asks the next one.
constexpr uint16_t kFlagRecursionAvailable = 0x0080;

bool IsHostCharacter(char c) {
  return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-' || c == '_';
}

// A name of labels; `host` is false when it has a character that no host name has.
struct Name {
  std::string text;
  bool host = true;
};

// The name in a question. Nothing stands before it that a pointer could mean, so one is malformed.
bool TakeName(ByteReader* reader, Name* name) {
  size_t bytes = 1;
  while (true) {
    const size_t length = reader->TakeNumber(1);
    if (reader->failed()) return false;
    if (length == 0) return true;
    bytes += length + 1;
    if (length > 63 || bytes > kNameBytesMax) return false;
    if (!name->text.empty()) name->text += '.';
    for (char c : reader->Take(length)) {
      const char lower = ascii::ToLower(c);
      name->host = name->host && IsHostCharacter(lower);
      name->text += lower;
    }
    if (reader->failed()) return false;
  }
}

// Steps over the name of a record; where a pointer leads does not matter.
bool SkipName(ByteReader* reader, bool* is_root) {
  size_t bytes = 0;
  while (true) {
    const size_t length = reader->TakeNumber(1);
    if (reader->failed()) return false;
    *is_root = bytes == 0 && length == 0;
    if (length == 0) return true;
    if (length >= 0xc0) {
      reader->Take(1);
      return !reader->failed();
    }
    bytes += length + 1;
    if (length > 63 || bytes > kNameBytesMax) return false;
    reader->Take(length);
  }
}

// The records behind the question, of which only EDNS counts.
DnsRcode ReadAdditional(ByteReader* reader, size_t count, DnsQuery* query) {
  for (size_t i = 0; i < count; ++i) {
    bool is_root = false;
    if (!SkipName(reader, &is_root)) return DnsRcode::kFormatError;
    const uint64_t type = reader->TakeNumber(2);
    const uint64_t record_class = reader->TakeNumber(2);
    reader->TakeNumber(1);
    const uint64_t version = reader->TakeNumber(1);
    reader->TakeNumber(2);
    reader->TakePrefixed(2);
    if (reader->failed()) return DnsRcode::kFormatError;
    if (type != kTypeOpt) continue;
    if (query->has_edns || !is_root) return DnsRcode::kFormatError;
    query->has_edns = true;
    query->udp_bytes_max = std::clamp<size_t>(record_class, kUdpBytesMin, kUdpBytesMax);
    if (version != 0) return DnsRcode::kBadVersion;
  }
  return reader->empty() ? DnsRcode::kNoError : DnsRcode::kFormatError;
}

void AppendNumber(std::string* out, uint64_t number, size_t width) {
  for (size_t i = width; i-- > 0;) *out += static_cast<char>(number >> (8 * i));
}

}  // namespace

Result<DnsQuery> ParseDnsQuery(std::string_view message) {
  if (message.size() < kHeaderBytes) return Error{Code::kInvalid, "shorter than a DNS header"};
  if (message.size() > kDnsMessageBytesMax) return Error{Code::kInvalid, "DNS message too long"};
  ByteReader reader(message);
  DnsQuery query;
  query.id = static_cast<uint16_t>(reader.TakeNumber(2));
  const uint64_t flags = reader.TakeNumber(2);
  if ((flags & kFlagResponse) != 0) return Error{Code::kInvalid, "a DNS reply, not a query"};
  query.recursion_desired = (flags & kFlagRecursionDesired) != 0;
  const uint64_t questions = reader.TakeNumber(2);
  const uint64_t answers = reader.TakeNumber(2);
  const uint64_t authorities = reader.TakeNumber(2);
  const uint64_t additional = reader.TakeNumber(2);
  const bool is_standard_query = ((flags >> 11) & 15) == 0;
  if (!is_standard_query) {
    query.fault = DnsRcode::kNotImplemented;
    return query;
  }
  query.fault = DnsRcode::kFormatError;
  if (questions != 1 || answers != 0 || authorities != 0) return query;
  const std::string_view rest = reader.left();
  Name name;
  if (!TakeName(&reader, &name)) return query;
  query.type = static_cast<uint16_t>(reader.TakeNumber(2));
  query.query_class = static_cast<uint16_t>(reader.TakeNumber(2));
  if (reader.failed()) return query;
  query.question = rest.substr(0, rest.size() - reader.left().size());
  if (name.host) query.name = std::move(name.text);
  query.fault = ReadAdditional(&reader, additional, &query);
  return query;
}

std::string RenderDnsReply(const DnsQuery& query, const DnsReply& answer, size_t bytes_max) {
  ENSURE(bytes_max >= kUdpBytesMin);
  const bool at_fault = query.fault != DnsRcode::kNoError;
  const unsigned rcode = static_cast<unsigned>(at_fault ? query.fault : answer.rcode);
  constexpr size_t kOptBytes = 11;
  size_t bytes = kHeaderBytes + query.question.size() + (query.has_edns ? kOptBytes : 0);

  std::string records;
  uint64_t count = 0;
  bool truncated = false;
  const size_t address_bytes = query.type == kDnsTypeA ? 4 : query.type == kDnsTypeAaaa ? 16 : 0;
  for (const std::string& address : answer.addresses) {
    if (rcode != 0 || address.size() != address_bytes) continue;
    bytes += 12 + address_bytes;
    truncated = truncated || bytes > bytes_max;
    if (truncated) continue;
    ++count;
    AppendNumber(&records, 0xc000 | kHeaderBytes, 2);  // The name: a pointer to the question's.
    AppendNumber(&records, query.type, 2);
    AppendNumber(&records, kDnsClassIn, 2);
    AppendNumber(&records, answer.ttl_s, 4);
    AppendNumber(&records, address_bytes, 2);
    records += address;
  }

  std::string out;
  AppendNumber(&out, query.id, 2);
  AppendNumber(&out,
               kFlagResponse | kFlagRecursionAvailable | (truncated ? kFlagTruncated : 0) |
                   (query.recursion_desired ? kFlagRecursionDesired : 0) | (rcode & 15),
               2);
  AppendNumber(&out, query.question.empty() ? 0 : 1, 2);
  AppendNumber(&out, count, 2);
  AppendNumber(&out, 0, 2);
  AppendNumber(&out, query.has_edns ? 1 : 0, 2);
  out += query.question;
  out += records;
  if (query.has_edns) {  // The root's name, our size, the upper bits of the code, no options.
    AppendNumber(&out, 0, 1);
    AppendNumber(&out, kTypeOpt, 2);
    AppendNumber(&out, kUdpBytesMax, 2);
    AppendNumber(&out, rcode >> 4, 1);
    AppendNumber(&out, 0, 5);
  }
  return out;
}

Result<std::optional<std::string_view>> FirstDnsTcpMessage(std::string_view in) {
  if (in.size() < 2) return std::optional<std::string_view>();
  ByteReader reader(in);
  const size_t length = reader.TakeNumber(2);
  if (length == 0) return Error{Code::kInvalid, "an empty DNS message"};
  if (length > kDnsMessageBytesMax) return Error{Code::kInvalid, "DNS message too long"};
  if (reader.left().size() < length) return std::optional<std::string_view>();
  return std::optional<std::string_view>(reader.Take(length));
}

std::string RenderDnsTcpMessage(std::string_view message) {
  ENSURE(message.size() <= 0xffff);
  std::string out;
  AppendNumber(&out, message.size(), 2);
  out += message;
  return out;
}

}  // namespace codec
