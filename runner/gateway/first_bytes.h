// SPDX-License-Identifier: Apache-2.0
// What a client speaks, judged by the first bytes that it sends in a tunnel. What TLS or HTTP/1 may
// still come of is waited for, however slowly it comes: taken for another protocol, it would reach
// any name behind the address. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace gateway {

// As much of the first line as is looked at.
constexpr size_t kFirstBytesMax = 8192;

enum class ClientProtocol {
  kNothing,  // More bytes are needed to tell.
  kTls,
  kHttp,   // A request line of HTTP/1, or what some server would take for one.
  kHttp2,  // With prior knowledge (RFC 9113, 3.4).
  kOther,
};

ClientProtocol RecogniseProtocol(std::string_view bytes);

// Where TLS is all that matters: kTls, kOther or kNothing.
ClientProtocol RecogniseTls(std::string_view bytes);

}  // namespace gateway
