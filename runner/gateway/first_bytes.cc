// SPDX-License-Identifier: Apache-2.0
#include "gateway/first_bytes.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/wire/http_head.h"

namespace gateway {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n";
constexpr std::string_view kBlanks = " \t\r\n";

unsigned At(std::string_view bytes, size_t at) { return static_cast<unsigned char>(bytes[at]); }

// A record of TLS: its type, and a version that readers must ignore (RFC 8446, 5.1). Most take no
// major version but 3, and no other record than a handshake's first; with another version only a
// ClientHello is taken for TLS.
ClientProtocol RecogniseRecord(std::string_view bytes) {
  constexpr unsigned kHandshake = 22;
  constexpr size_t kMessageType = 5;  // Behind type, version and length.
  if (bytes.size() < 2) return ClientProtocol::kNothing;
  if (At(bytes, 1) == 3) return ClientProtocol::kTls;
  if (At(bytes, 0) != kHandshake) return ClientProtocol::kOther;
  if (bytes.size() <= kMessageType) return ClientProtocol::kNothing;
  return At(bytes, kMessageType) == 1 ? ClientProtocol::kTls : ClientProtocol::kOther;
}

// A ClientHello in a record of SSL 2.0 (RFC 5246, E.2), which servers of TLS 1.2 may still take.
ClientProtocol RecogniseOldHello(std::string_view bytes) {
  constexpr size_t kMessageType = 2;  // Behind the length.
  constexpr size_t kMajor = 3;
  if (bytes.size() <= kMessageType) return ClientProtocol::kNothing;
  if (At(bytes, kMessageType) != 1) return ClientProtocol::kOther;
  if (bytes.size() <= kMajor) return ClientProtocol::kNothing;
  bool known = At(bytes, kMajor) == 3 || At(bytes, kMajor) == 0;
  return known ? ClientProtocol::kTls : ClientProtocol::kOther;
}

}  // namespace

ClientProtocol RecogniseTls(std::string_view bytes) {
  if (bytes.empty()) return ClientProtocol::kNothing;
  const unsigned first = At(bytes, 0);
  if (first >= 20 && first <= 23) return RecogniseRecord(bytes);
  // Its length has 14 bits.
  if (first >= 0x80 && first < 0xc0) return RecogniseOldHello(bytes);
  return ClientProtocol::kOther;
}

ClientProtocol RecogniseProtocol(std::string_view bytes) {
  const ClientProtocol tls = RecogniseTls(bytes);
  if (tls != ClientProtocol::kOther) return tls;
  if (bytes.starts_with(kPreface)) return ClientProtocol::kHttp2;
  if (kPreface.starts_with(bytes)) return ClientProtocol::kNothing;
  const bool full = bytes.size() >= kFirstBytesMax;
  const ClientProtocol unfinished = full ? ClientProtocol::kHttp : ClientProtocol::kNothing;
  // Servers skip empty lines in front of a request (RFC 9112, 2.2), and some skip blanks.
  bytes.remove_prefix(std::min(bytes.find_first_not_of(kBlanks), bytes.size()));
  const auto* end = std::find_if_not(bytes.begin(), bytes.end(), codec::IsTokenChar);
  const std::string_view method = bytes.substr(0, static_cast<size_t>(end - bytes.begin()));
  if (method.size() == bytes.size()) return unfinished;
  const char behind = bytes[method.size()];
  if (method.empty() || (behind != ' ' && behind != '\t')) return ClientProtocol::kOther;
  if (codec::IsMethod(method)) return ClientProtocol::kHttp;
  // Any token is a method to some servers, and a word of other protocols: the line tells.
  const size_t line_end = bytes.find('\n');
  const std::string line = ascii::LowerCase(bytes.substr(0, line_end));
  if (line.find(" http/") != std::string::npos || line.find("\thttp/") != std::string::npos) {
    return ClientProtocol::kHttp;
  }
  return line_end == std::string_view::npos ? unfinished : ClientProtocol::kOther;
}

}  // namespace gateway
