// SPDX-License-Identifier: Apache-2.0
// Converts HTTP/2 header lists to HTTP/1 heads and back. Pure, and strict: what RFC 9113 calls
// malformed is refused, and so is anything that an HTTP/1 server would read differently when the
// message is downgraded. That is where requests are smuggled ("HTTP/2: The Sequel is Always Worse",
// 2021).
#pragma once

#include <string_view>

#include "base/result.h"
#include "codec/wire/http_head.h"

namespace gateway {

// A request as the rest of the gateway reads it.
struct Http2Request {
  codec::RequestHead head;     // Origin-form target (or "*"), Host first, names in lower case.
  codec::BodyFraming framing;  // kUntilClose: the length is not known.
};

// Parses a request's `fields` as HPACK gave them, pseudo-header fields among them. `end` is true if
// no body follows. `scheme` is the connection's, "https" or "http". Refuses with kInvalid and what
// is wrong, never with the bytes themselves: pseudo-header fields that are missing, repeated,
// unknown or late, names with capitals, fields of connections (RFC 9113, 8.2.2), control characters
// and outer white space in values, CONNECT in both its forms (RFC 8441), a Host that differs from
// :authority, a :path that would not be one word of a request line. Cookie crumbs become one field
// (8.2.3).
Result<Http2Request> ParseHttp2Request(const codec::HttpFields& fields, bool end,
                                       std::string_view scheme);

// Parses the head of an answer, interim ones too; 101 does not exist in HTTP/2 (8.6).
Result<codec::ResponseHead> ParseHttp2Response(const codec::HttpFields& fields);

// Checks the fields that follow a body: no pseudo-header fields, and none that frame or route the
// message (RFC 9110, 6.5.1), for the reader who merges them into the head. Fails with kInvalid.
Status CheckHttp2Trailers(const codec::HttpFields& fields);

// Returns how the body of an answer is framed: kNone with `end`, kLength, or kChunked if the length
// is not known but the end is (message.h). Fails with kInvalid on lengths that differ or are
// malformed.
Result<codec::BodyFraming> Http2ResponseFraming(const codec::ResponseHead& head, bool end,
                                                std::string_view request_method);

// Render header lists to send. `fields` are judged ones of either version: names become lower case,
// Host becomes :authority, fields of connections and the framing stay out, and the length of a
// kLength body is added.
codec::HttpFields RenderHttp2Request(std::string_view method, std::string_view scheme,
                                     std::string_view target, const codec::HttpFields& fields,
                                     const codec::BodyFraming& framing);
codec::HttpFields RenderHttp2Response(int status, const codec::HttpFields& fields,
                                      const codec::BodyFraming& framing);
codec::HttpFields RenderHttp2Trailers(const codec::HttpFields& fields);

// True for fields that may stand in HPACK's table, which outlives the request: the few that are
// known to hold no credential. Any other field may hold one, so it is never indexed (RFC 7541,
// 7.1.3).
bool MayIndexHttp2Field(std::string_view name);

}  // namespace gateway
