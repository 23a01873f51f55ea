// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/authority.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "policy/model/destination.h"

namespace gateway {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035, 2.3.4, as text.
constexpr size_t kLabelBytesMax = 63;

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return port;
}

bool IsHostName(std::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax) return false;
  size_t label = 0;
  for (char c : host) {
    if (c == '.') {
      if (label == 0) return false;
      label = 0;
      continue;
    }
    if (!ascii::IsAlpha(c) && !ascii::IsDigit(c) && c != '-' && c != '_') return false;
    if (++label > kLabelBytesMax) return false;
  }
  return label > 0;
}

std::optional<std::string> CanonicalHost(std::string_view text) {
  std::string host = ascii::LowerCase(text);
  if (host.ends_with('.')) host.pop_back();
  if (!IsHostName(host)) return std::nullopt;
  std::optional<policy::Address> address = policy::ParseAddress(host);
  if (address.has_value()) return policy::RenderAddress(*address);
  // "127.1" and "0x7f.1" are addresses to some resolvers: a name whose last label is a number is
  // not a name (WHATWG URL, "ends in a number").
  std::string_view last = std::string_view(host).substr(host.rfind('.') + 1);
  bool number = std::all_of(last.begin(), last.end(), ascii::IsDigit) ||
                (last.size() > 1 && last.substr(0, 2) == "0x");
  if (number) return std::nullopt;
  return host;
}

}  // namespace

std::optional<Authority> ParseAuthority(std::string_view text,
                                        std::optional<uint16_t> default_port) {
  Authority authority;
  std::string_view port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    std::optional<policy::Address> address = policy::ParseAddress(text.substr(1, close - 1));
    if (!address.has_value() || text.substr(1, close - 1).find(':') == std::string_view::npos) {
      return std::nullopt;
    }
    authority.host = policy::RenderAddress(*address);
    std::string_view rest = text.substr(close + 1);
    has_port = !rest.empty();
    if (has_port && rest.front() != ':') return std::nullopt;
    if (has_port) port = rest.substr(1);
  } else {
    size_t colon = text.find(':');
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
    std::optional<std::string> host = CanonicalHost(text.substr(0, colon));
    if (!host.has_value()) return std::nullopt;
    authority.host = std::move(*host);
  }
  std::optional<uint16_t> number = has_port ? ParsePort(port) : default_port;
  if (!number.has_value()) return std::nullopt;
  authority.port = *number;
  return authority;
}

std::string RenderAuthority(const Authority& authority, uint16_t default_port) {
  bool bracketed = authority.host.find(':') != std::string::npos;
  std::string text = bracketed ? "[" + authority.host + "]" : authority.host;
  if (authority.port != default_port) text += ":" + std::to_string(authority.port);
  return text;
}

std::optional<AbsoluteTarget> ParseAbsoluteTarget(std::string_view target) {
  size_t colon = target.find("://");
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  AbsoluteTarget parts;
  for (size_t i = 0; i < colon; ++i) {
    char c = target[i];
    bool scheme_char =
        ascii::IsAlpha(c) || (i > 0 && (ascii::IsDigit(c) || c == '+' || c == '-' || c == '.'));
    if (!scheme_char) return std::nullopt;
    parts.scheme += ascii::ToLower(c);
  }
  std::string_view rest = target.substr(colon + 3);
  size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  parts.authority = rest.substr(0, end);
  parts.path_and_query = rest.substr(end);
  if (parts.path_and_query.empty() || parts.path_and_query.front() != '/') {
    parts.path_and_query.insert(0, "/");
  }
  return parts;
}

}  // namespace gateway
