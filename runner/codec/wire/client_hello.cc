// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/client_hello.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/ascii.h"
#include "codec/data/byte_reader.h"

namespace codec {
namespace {

constexpr char kHandshakeRecord = 22;
constexpr char kClientHelloMessage = 1;
constexpr uint64_t kServerNameExtension = 0;
constexpr uint64_t kAlpnExtension = 16;
constexpr size_t kRecordHeadBytes = 5;
constexpr size_t kMessageHeadBytes = 4;
constexpr size_t kRecordBytesMax = 16384;

// The handshake message without its head; nothing: it has not arrived whole.
Result<std::optional<std::string>> JoinRecords(std::string_view bytes) {
  std::string message;
  while (true) {
    if (message.size() >= kMessageHeadBytes) {
      ByteReader reader(message);
      reader.Take(1);
      const uint64_t length = reader.TakeNumber(3);
      if (length > kClientHelloBytesMax) return Invalid("ClientHello too long");
      // It ends with its record: keys change after it (RFC 8446, 5.1).
      if (reader.left().size() > length) return Invalid("something after the ClientHello");
      if (reader.left().size() == length) return std::optional(std::string(reader.left()));
    }
    // Refused byte by byte, so that what can never become one is known at once.
    if (!bytes.empty() && bytes[0] != kHandshakeRecord) return Invalid("not TLS");
    if (bytes.size() > 1 && bytes[1] != 3) return Invalid("not TLS");
    if (bytes.size() < kRecordHeadBytes) return std::optional<std::string>();
    ByteReader reader(bytes);
    reader.Take(1);
    const uint64_t version = reader.TakeNumber(2);
    const size_t length = reader.TakeNumber(2);
    if (version < 0x0301 || version > 0x0304) return Invalid("an unknown version of TLS");
    if (length == 0 || length > kRecordBytesMax) return Invalid("invalid length of a TLS record");
    const std::string_view record = reader.left().substr(0, length);
    message += record;
    if (!message.empty() && message[0] != kClientHelloMessage) {
      return Invalid("not a ClientHello");
    }
    if (message.size() > kClientHelloBytesMax) return Invalid("ClientHello too long");
    if (record.size() < length) return std::optional<std::string>();
    bytes.remove_prefix(kRecordHeadBytes + length);
  }
}

// A name as in DNS (RFC 6066: no final dot), in lower case.
Result<std::string> HostName(std::string_view name) {
  std::string lower;
  size_t label = 0;
  for (char c : name) {
    c = ascii::ToLower(c);
    const bool is_dot = c == '.';
    const bool is_valid =
        is_dot ? label > 0 : ascii::IsLower(c) || ascii::IsDigit(c) || c == '-' || c == '_';
    label = is_dot ? 0 : label + 1;
    if (!is_valid || label > 63) return Invalid("a server name that is no host name");
    lower += c;
  }
  if (label == 0 || lower.size() > 253) return Invalid("a server name that is no host name");
  return lower;
}

Result<std::string> ServerName(std::string_view extension) {
  ByteReader reader(extension);
  ByteReader list(reader.TakePrefixed(2));
  const uint64_t type = list.TakeNumber(1);
  const std::string_view name = list.TakePrefixed(2);
  // Other types than 0 were never defined, and one list holds one name of each.
  if (reader.failed() || !reader.empty() || list.failed() || !list.empty() || type != 0) {
    return Invalid("malformed server name extension");
  }
  return HostName(name);
}

Result<std::vector<std::string>> Protocols(std::string_view extension) {
  ByteReader reader(extension);
  ByteReader list(reader.TakePrefixed(2));
  std::vector<std::string> protocols;
  while (!list.empty()) {
    protocols.emplace_back(list.TakePrefixed(1));
    if (protocols.back().empty()) return Invalid("malformed protocol extension");
  }
  if (reader.failed() || !reader.empty() || list.failed() || protocols.empty()) {
    return Invalid("malformed protocol extension");
  }
  return protocols;
}

Result<ClientHello> ReadExtensions(std::string_view extensions) {
  ClientHello hello;
  std::set<uint64_t> seen;
  ByteReader reader(extensions);
  while (!reader.empty()) {
    const uint64_t type = reader.TakeNumber(2);
    const std::string_view extension = reader.TakePrefixed(2);
    if (reader.failed()) return Invalid("malformed extension");
    if (!seen.insert(type).second) return Invalid("an extension twice");
    if (type == kServerNameExtension) {
      hello.server_name = TRY(ServerName(extension));
    } else if (type == kAlpnExtension) {
      hello.protocols = TRY(Protocols(extension));
    }
  }
  return hello;
}

}  // namespace

Result<std::optional<ClientHello>> ParseClientHello(std::string_view bytes) {
  const std::optional<std::string> message = TRY(JoinRecords(bytes));
  if (!message.has_value()) return std::optional<ClientHello>();
  ByteReader reader(*message);
  const uint64_t version = reader.TakeNumber(2);
  reader.Take(32);  // Random.
  const std::string_view session = reader.TakePrefixed(1);
  const std::string_view ciphers = reader.TakePrefixed(2);
  const std::string_view compressions = reader.TakePrefixed(1);
  if (reader.failed() || version < 0x0301 || version > 0x0303 || session.size() > 32 ||
      ciphers.empty() || ciphers.size() % 2 != 0 || compressions.empty()) {
    return Invalid("malformed ClientHello");
  }
  if (reader.empty()) return std::optional<ClientHello>(ClientHello{});  // No extensions at all.
  const std::string_view extensions = reader.TakePrefixed(2);
  if (reader.failed() || !reader.empty()) return Invalid("malformed ClientHello");
  ClientHello hello = TRY(ReadExtensions(extensions));
  return std::optional<ClientHello>(std::move(hello));
}

}  // namespace codec
