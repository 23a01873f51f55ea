// SPDX-License-Identifier: Apache-2.0
// Recognises the protocol of a client by the first bytes that it sends in a tunnel. Bytes that may
// still become TLS or HTTP/1 are waited for, however slowly they come: taken for another protocol,
// they would reach any name behind the address. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace gateway {

// The part of the first line that is looked at.
constexpr size_t kFirstBytesMax = 8192;

enum class ClientProtocol {
  kNothing,  // More bytes are needed to tell.
  kTls,
  kHttp,   // A request line of HTTP/1, or what some server would take for one.
  kHttp2,  // With prior knowledge (RFC 9113, 3.4).
  kOther,
};

ClientProtocol RecogniseProtocol(std::string_view bytes);

// Recognises TLS where nothing else matters: kTls, kOther or kNothing.
ClientProtocol RecogniseTls(std::string_view bytes);

}  // namespace gateway
