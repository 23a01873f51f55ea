// SPDX-License-Identifier: Apache-2.0
#include "net/proxy.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "base/ascii.h"

namespace net {
namespace {

// An IPv4 or IPv6 address in network order; `bits` is 32 or 128.
struct Address {
  std::array<unsigned char, 16> bytes{};
  int bits = 0;
};

std::optional<Address> ParseAddress(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string copy(text);
  Address address;
  if (::inet_pton(AF_INET, copy.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (::inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  } else {
    return std::nullopt;
  }
  return address;
}

// `entry` is an address, or "ADDRESS/BITS".
bool Contains(std::string_view entry, const Address& address) {
  const size_t slash = entry.find('/');
  std::optional<Address> network = ParseAddress(entry.substr(0, slash));
  if (!network || network->bits != address.bits) return false;
  int bits = address.bits;
  if (slash != std::string_view::npos) {
    std::string_view number = entry.substr(slash + 1);
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
    if (error != std::errc() || end != number.data() + number.size()) return false;
    if (bits < 0 || bits > address.bits) return false;
  }
  const size_t whole = static_cast<size_t>(bits) / 8;
  if (::memcmp(network->bytes.data(), address.bytes.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const int mask = 0xff00 >> (bits % 8) & 0xff;
  return ((network->bytes[whole] ^ address.bytes[whole]) & mask) == 0;
}

bool Names(std::string_view entry, std::string_view host) {
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty() || !host.ends_with(entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

}  // namespace

Status CheckProxy(const Proxy& proxy) {
  if (proxy.url.empty()) return Ok();
  std::string url = proxy.url.find("://") == std::string::npos ? "http://" + proxy.url : proxy.url;
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> handle(curl_url(), &curl_url_cleanup);
  if ((url.starts_with("http://") || url.starts_with("https://")) && handle &&
      std::none_of(url.begin(), url.end(),
                   [](char c) { return ascii::IsControl(c) || c == ' '; }) &&
      curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK) {
    return Ok();
  }
  return Error{
      Code::kInvalid,
      "the proxy's address is not an http or https URL (it is not shown, since it may hold "
      "a password)",
      "HTTPS_PROXY=http://USER:PASSWORD@proxy.example.com:3128"};
}

bool TakesProxy(const Proxy& proxy, const Url& url) {
  if (proxy.url.empty() || KindOf(url.host) == AddressKind::kLoopback) return false;
  std::optional<Address> address = ParseAddress(url.host);
  std::string except = proxy.except;
  for (char& c : except) c = ascii::ToLower(c);
  std::string_view rest = except;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(", \t"), rest.size());
    std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (entry == "*") return false;
    if (address ? Contains(entry, *address) : Names(entry, url.host)) return false;
  }
  return true;
}

}  // namespace net
