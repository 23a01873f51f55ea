// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/http_target.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/ascii.h"
#include "codec/wire/query.h"

namespace codec {
namespace {

constexpr size_t kPathBytesMax = 4096;

// The byte of "%XX" at `at`, or -1.
int DecodeEscape(std::string_view text, size_t at) {
  if (text.size() - at < 3) return -1;
  int high = ascii::HexValue(text[at + 1]);
  int low = ascii::HexValue(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// RFC 3986's pchar without the escapes.
bool IsPathByte(uint8_t byte) {
  return std::isalnum(byte) != 0 ||
         std::string_view("-._~!$&'()*+,;=:@").find(static_cast<char>(byte)) !=
             std::string_view::npos;
}

void AppendPathByte(uint8_t byte, std::string* out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (IsPathByte(byte)) {
    out->push_back(static_cast<char>(byte));
    return;
  }
  out->push_back('%');
  out->push_back(kHex[byte >> 4]);
  out->push_back(kHex[byte & 15]);
}

// One segment between slashes, decoded, encoded again and without its `;params`. The dots of a
// segment are literal in this form, and an encoded slash is "%2F".
Result<std::string> CanonicalSegment(std::string_view raw, bool allow_encoded_slash) {
  std::string segment;
  bool in_parameters = false;
  for (size_t i = 0; i < raw.size(); ++i) {
    uint8_t byte = static_cast<uint8_t>(raw[i]);
    if (raw[i] == '%') {
      int decoded = DecodeEscape(raw, i);
      if (decoded < 0) return Invalid("an invalid percent escape in the path");
      if (decoded < 0x20 || decoded == 0x7F) return Invalid("an encoded control byte in the path");
      if (decoded == '/' && !allow_encoded_slash) {
        return Invalid("an encoded slash (%2F) in the path; the endpoint does not allow it");
      }
      byte = static_cast<uint8_t>(decoded);
      i += 2;
    }
    // The part behind ';' is dropped, encoded or not, but it must still be well formed.
    if (byte == ';') in_parameters = true;
    if (!in_parameters) AppendPathByte(byte, &segment);
  }
  return segment;
}

Status CheckRawPath(std::string_view path) {
  if (path.size() > kPathBytesMax) return Invalid("the path is longer than 4096 bytes");
  if (path.front() != '/') return Invalid("the path does not start with '/'");
  for (char c : path) {
    uint8_t byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7F) return Invalid("a control byte in the path");
    if (byte >= 0x80) return Invalid("a non-ASCII byte in the path; it must be percent-encoded");
    if (c == '#') return Invalid("a fragment in the path");
    if (c == '?') return Invalid("a query in the path");
  }
  return Ok();
}

// A dot segment beside an encoded slash survives resolution; a server that decodes "%2F" would
// climb with it, and so would one to which a backslash is a slash.
bool HidesDotSegment(std::string_view segment) {
  for (size_t begin = 0, end = 0; end < segment.size(); begin = end + 3) {
    end = std::min({segment.find("%2F", begin), segment.find("%5C", begin), segment.size()});
    std::string_view part = segment.substr(begin, end - begin);
    if (part == "." || part == "..") return true;
  }
  return false;
}

// Returns whether a segment has overlong forms such as "%C0%AE": no UTF-8, but a dot or a slash to
// a decoder that does not look.
bool IsOverlong(std::string_view segment) {
  for (const char* form : {"%C0%", "%C1%", "%E0%8", "%E0%9", "%F0%8"}) {
    if (segment.find(form) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Result<std::string> CanonicalPath(std::string_view path, bool allow_encoded_slash) {
  if (path.empty()) return std::string("/");
  TRY(CheckRawPath(path));
  std::vector<std::string> kept;
  size_t start = 1;
  bool last = false;
  while (!last) {
    size_t slash = path.find('/', start);
    last = slash == std::string_view::npos;
    std::string_view raw = path.substr(start, last ? std::string_view::npos : slash - start);
    start = last ? path.size() : slash + 1;
    std::string segment = TRY(CanonicalSegment(raw, allow_encoded_slash));
    bool dots = segment == "." || segment == "..";
    if (segment == "..") {
      if (kept.empty()) return Invalid("the path climbs above the root");
      kept.pop_back();
    }
    if (dots || segment.empty()) {
      if (last) kept.emplace_back();  // A trailing slash stays one.
      continue;
    }
    if (HidesDotSegment(segment)) return Invalid("a dot segment next to an encoded slash");
    if (IsOverlong(segment)) return Invalid("an overlong UTF-8 encoding in the path");
    kept.push_back(std::move(segment));
  }
  std::string canonical;
  for (const std::string& segment : kept) canonical += "/" + segment;
  return canonical;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  QueryReader reader(query);
  while (reader.Next()) pairs.emplace_back(reader.key(), reader.value());
  if (!reader.error().empty()) return Invalid(reader.error());
  return pairs;
}

Result<std::pair<std::string, uint16_t>> ParseAuthority(std::string_view text) {
  std::string_view host;
  std::string_view port;
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos || close + 1 >= text.size() || text[close + 1] != ':') {
      return Invalid("not [address]:port");
    }
    host = text.substr(1, close - 1);
    port = text.substr(close + 2);
    if (host.find(':') == std::string_view::npos) return Invalid("not an IPv6 address in brackets");
  } else {
    size_t colon = text.find(':');
    if (colon == std::string_view::npos) return Invalid("missing port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.empty()) return Invalid("missing host");
  for (char c : host) {
    if (static_cast<uint8_t>(c) <= 0x20 || c == 0x7F || c == '/' || c == '@' || c == '[') {
      return Invalid("an invalid character in the host");
    }
  }
  unsigned number = 0;
  if (port.empty() || port.size() > 5) return Invalid("not a port from 0 to 65535");
  for (char c : port) {
    if (c < '0' || c > '9') return Invalid("not a port from 0 to 65535");
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  if (number > 65535) return Invalid("not a port from 0 to 65535");
  std::string lower = ascii::LowerCase(host);
  if (lower == "." || lower.ends_with("..")) return Invalid("the host ends in an empty label");
  if (lower.ends_with('.')) lower.pop_back();  // The same name.
  return std::make_pair(std::move(lower), static_cast<uint16_t>(number));
}

Result<RequestUrl> ParseRequestUrl(std::string_view text) {
  RequestUrl url;
  size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    std::pair<std::string, uint16_t> authority = TRY(ParseAuthority(text));
    url.host = std::move(authority.first);
    url.port = authority.second;
    return url;
  }
  url.scheme = std::string(text.substr(0, scheme_end));
  if (url.scheme != "http" && url.scheme != "https") {
    return Invalid("a URL must start with http:// or https://");
  }
  std::string_view rest = text.substr(scheme_end + 3);
  size_t authority_end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string authority_text(rest.substr(0, authority_end));
  // No port behind the host, or behind the bracket that ends an IPv6 address.
  size_t bracket = authority_text.rfind(']');
  size_t search = bracket == std::string::npos ? 0 : bracket;
  if (authority_text.find(':', search) == std::string::npos) {
    authority_text += url.scheme == "https" ? ":443" : ":80";
  }
  std::pair<std::string, uint16_t> authority = TRY(ParseAuthority(authority_text));
  url.host = std::move(authority.first);
  url.port = authority.second;
  std::string_view target = rest.substr(authority_end);
  if (!target.starts_with('/')) url.target.push_back('/');
  url.target += target;
  return url;
}

}  // namespace codec
