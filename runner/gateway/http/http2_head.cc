// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_head.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace gateway {
namespace {

using codec::HttpField;
using codec::HttpFields;

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), codec::IsTokenChar);
}

bool IsLowerToken(std::string_view text) {
  return IsToken(text) && std::none_of(text.begin(), text.end(), ascii::IsUpper);
}

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

template <size_t N>
bool OneOf(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Fields that speak of the connection and have no meaning here (RFC 9113, 8.2.2).
bool BelongsToConnection(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "connection",        "keep-alive", "proxy-connection",
      "transfer-encoding", "upgrade",    "http2-settings"};
  return OneOf(kNames, name);
}

// Returns whether a field must not stand behind a body, where it was not judged.
bool IsForbiddenInTrailers(std::string_view name) {
  return BelongsToConnection(name) || !codec::MayBeTrailer(name);
}

Status CheckField(const HttpField& field) {
  if (!IsLowerToken(field.name)) return Invalid("invalid header name");
  if (codec::MayBeReadAsFraming(field.name)) return Invalid("a framing header with an underscore");
  if (BelongsToConnection(field.name)) return Invalid("connection-specific header in HTTP/2");
  const std::string& value = field.value;
  bool clean = std::all_of(value.begin(), value.end(),
                           [](char c) { return c == '\t' || !ascii::IsControl(c); });
  if (!clean) return Invalid("control character in a header value");
  if (!value.empty() && (IsSpace(value.front()) || IsSpace(value.back()))) {
    return Invalid("whitespace around a header value");
  }
  return Ok();
}

struct PseudoFields {
  std::optional<std::string_view> method, scheme, authority, path;
};

Status TakePseudoField(const HttpField& field, PseudoFields& pseudo) {
  std::optional<std::string_view>* slot = nullptr;
  if (field.name == ":method") slot = &pseudo.method;
  if (field.name == ":scheme") slot = &pseudo.scheme;
  if (field.name == ":authority") slot = &pseudo.authority;
  if (field.name == ":path") slot = &pseudo.path;
  if (field.name == ":protocol") return Invalid("extended CONNECT");
  if (slot == nullptr) return Invalid("unknown pseudo-header field");
  if (slot->has_value()) return Invalid("repeated pseudo-header field");
  *slot = field.value;
  return Ok();
}

// Returns whether a request line of HTTP/1 can carry `text` as its second word.
bool IsOneWord(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(),
                                       [](char c) { return c == ' ' || ascii::IsControl(c); });
}

Status CheckRequestLine(const PseudoFields& pseudo, std::string_view scheme) {
  if (!pseudo.method.has_value()) return Invalid("missing :method");
  if (!codec::IsMethod(*pseudo.method)) {
    return Invalid("invalid :method");
  }
  if (*pseudo.method == "CONNECT") return Invalid("CONNECT inside a tunnel");
  if (!pseudo.scheme.has_value()) return Invalid("missing :scheme");
  if (*pseudo.scheme != scheme) return Invalid(":scheme differs from the connection's");
  if (!pseudo.path.has_value()) return Invalid("missing :path");
  bool asterisk = *pseudo.path == "*" && *pseudo.method == "OPTIONS";
  if (!IsOneWord(*pseudo.path) || (pseudo.path->front() != '/' && !asterisk) ||
      codec::FindInvalidUtf8(*pseudo.path) != std::string_view::npos) {
    return Invalid("invalid :path");
  }
  return Ok();
}

// Adds one field that is not a pseudo-header to `head`.
Status TakeField(const HttpField& field, codec::RequestHead& head, HttpField*& cookies) {
  TRY(CheckField(field));
  if (codec::FindInvalidUtf8(field.value) != std::string_view::npos) {
    return Invalid("header value is not UTF-8");
  }
  if (field.name == "te" && field.value != "trailers") return Invalid("TE other than trailers");
  if (field.name == "cookie" && cookies != nullptr) {
    // An empty part between two separators is not a cookie, and white space at an end would be
    // lost.
    if (!cookies->value.empty() && !field.value.empty()) cookies->value += "; ";
    cookies->value += field.value;
    return Ok();
  }
  if (field.name == "host") {
    HttpField& host = head.fields.front();
    if (host.value.empty()) {
      host.value = field.value;
    } else if (!codec::EqualIgnoringCase(host.value, field.value)) {
      return Invalid("Host differs from :authority");
    }
    return Ok();
  }
  head.fields.push_back(field);
  if (field.name == "cookie") cookies = &head.fields.back();
  return Ok();
}

// A request whose end came with its head, for a server that asks for a length where a body is
// expected (RFC 9110, 8.6).
codec::BodyFraming EmptyBody(const std::string& method) {
  bool expected = method == "POST" || method == "PUT" || method == "PATCH";
  return {expected ? codec::BodyFraming::kLength : codec::BodyFraming::kNone, 0};
}

}  // namespace

Result<Http2Request> ParseHttp2Request(const HttpFields& fields, bool end,
                                       std::string_view scheme) {
  Http2Request request;
  codec::RequestHead& head = request.head;
  PseudoFields pseudo;
  size_t first = 0;
  for (; first < fields.size() && fields[first].name.substr(0, 1) == ":"; ++first) {
    TRY(TakePseudoField(fields[first], pseudo));
  }
  TRY(CheckRequestLine(pseudo, scheme));
  head.method = *pseudo.method;
  head.target = *pseudo.path;
  head.fields.reserve(fields.size() + 1);  // `cookies` points into it.
  head.fields.push_back({"host", std::string(pseudo.authority.value_or(""))});
  TRY(CheckField(head.fields.front()));
  HttpField* cookies = nullptr;
  for (size_t i = first; i < fields.size(); ++i) TRY(TakeField(fields[i], head, cookies));
  if (!IsOneWord(head.fields.front().value)) return Invalid("missing or invalid :authority");
  codec::BodyFraming framing = TRY(codec::RequestFraming(head));
  bool sized = framing.kind == codec::BodyFraming::kLength;
  if (end && sized && framing.length > 0) return Invalid("Content-Length without a body");
  if (!sized && end) framing = EmptyBody(head.method);
  if (!sized && !end) framing.kind = codec::BodyFraming::kUntilClose;
  request.framing = framing;
  return request;
}

Result<codec::ResponseHead> ParseHttp2Response(const HttpFields& fields) {
  if (fields.empty() || fields[0].name != ":status") return Invalid("missing :status");
  const std::string& digits = fields[0].value;
  bool number = digits.size() == 3 && std::all_of(digits.begin(), digits.end(), ascii::IsDigit);
  codec::ResponseHead head;
  if (number) head.status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  if (head.status < 100) return Invalid("invalid :status");
  if (head.status == 101) return Invalid("101 in HTTP/2");
  for (size_t i = 1; i < fields.size(); ++i) {
    TRY(CheckField(fields[i]));
    head.fields.push_back(fields[i]);
  }
  return head;
}

Status CheckHttp2Trailers(const HttpFields& fields) {
  for (const HttpField& field : fields) {
    TRY(CheckField(field));
    if (IsForbiddenInTrailers(field.name)) return Invalid("forbidden trailer field");
  }
  return Ok();
}

Result<codec::BodyFraming> Http2ResponseFraming(const codec::ResponseHead& head, bool end,
                                                std::string_view request_method) {
  codec::BodyFraming framing = TRY(codec::ResponseFraming(head, request_method));
  if (end) return codec::BodyFraming();
  if (framing.kind == codec::BodyFraming::kUntilClose) framing.kind = codec::BodyFraming::kChunked;
  return framing;
}

namespace {

void AppendFields(HttpFields& out, const HttpFields& fields) {
  for (const HttpField& field : fields) {
    std::string name = ascii::LowerCase(field.name);
    bool kept = !BelongsToConnection(name) && name != "host" && name != "content-length" &&
                (name != "te" || codec::EqualIgnoringCase(field.value, "trailers"));
    if (kept) out.push_back({std::move(name), field.value});
  }
}

void AppendLength(HttpFields& out, const codec::BodyFraming& framing) {
  if (framing.kind != codec::BodyFraming::kLength) return;
  out.push_back({"content-length", std::to_string(framing.length)});
}

}  // namespace

HttpFields RenderHttp2Request(std::string_view method, std::string_view scheme,
                              std::string_view target, const HttpFields& fields,
                              const codec::BodyFraming& framing) {
  const HttpField* host = codec::FindField(fields, "host");
  HttpFields out;
  out.reserve(fields.size() + 5);
  out.push_back({":method", std::string(method)});
  out.push_back({":scheme", std::string(scheme)});
  out.push_back({":authority", host == nullptr ? "" : host->value});
  out.push_back({":path", std::string(target)});
  AppendFields(out, fields);
  AppendLength(out, framing);
  return out;
}

HttpFields RenderHttp2Response(int status, const HttpFields& fields,
                               const codec::BodyFraming& framing) {
  HttpFields out;
  out.reserve(fields.size() + 2);
  out.push_back({":status", std::to_string(status)});
  AppendFields(out, fields);
  // The length of a body that HEAD or a 304 leaves out is a field like any other.
  const HttpField* length = codec::FindField(fields, "content-length");
  if (framing.kind == codec::BodyFraming::kNone && length != nullptr) {
    out.push_back({"content-length", length->value});
  }
  AppendLength(out, framing);
  return out;
}

HttpFields RenderHttp2Trailers(const HttpFields& fields) {
  HttpFields out;
  for (const HttpField& field : fields) {
    std::string name = ascii::LowerCase(field.name);
    if (!IsForbiddenInTrailers(name)) out.push_back({std::move(name), field.value});
  }
  return out;
}

bool MayIndexHttp2Field(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kNames = {":method",
                                                              ":scheme",
                                                              ":authority",
                                                              ":status",
                                                              "accept",
                                                              "accept-encoding",
                                                              "accept-language",
                                                              "content-type",
                                                              "content-encoding",
                                                              "date",
                                                              "grpc-encoding",
                                                              "grpc-accept-encoding",
                                                              "te",
                                                              "user-agent"};
  return OneOf(kNames, name);
}

}  // namespace gateway
