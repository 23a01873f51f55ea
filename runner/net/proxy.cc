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
#include <vector>

#include "base/ascii.h"
#include "net/url.h"

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

// Returns what NO_PROXY lists, in lower case.
std::vector<std::string> Entries(std::string_view except) {
  std::vector<std::string> entries(1);
  for (char c : except) {
    if (c != ',' && c != ' ' && c != '\t') {
      entries.back() += ascii::ToLower(c);
    } else if (!entries.back().empty()) {
      entries.emplace_back();
    }
  }
  return entries;
}

// Returns a part of the address, decoded; empty if it has none.
SecretString DecodedPart(CURLU* handle, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(handle, part, &text, CURLU_URLDECODE) != CURLUE_OK) return "";
  SecretString copy(text);
  ::explicit_bzero(text, ::strlen(text));
  curl_free(text);
  return copy;
}

}  // namespace

Result<ProxyAddress> ParseProxy(const Proxy& proxy) {
  const Error invalid{
      Code::kInvalid,
      "the proxy's address is not an http or https URL (it is not shown, since it may hold "
      "a password)",
      "HTTPS_PROXY=http://USER:PASSWORD@proxy.example.com:3128"};
  std::string url = proxy.url.find("://") == std::string::npos ? "http://" + proxy.url : proxy.url;
  ProxyAddress address;
  address.tls = url.starts_with("https://");
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> handle(curl_url(), &curl_url_cleanup);
  if ((!address.tls && !url.starts_with("http://")) || !handle ||
      std::any_of(url.begin(), url.end(), [](char c) { return ascii::IsControl(c) || c == ' '; }) ||
      curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return invalid;
  }
  address.host = DecodedPart(handle.get(), CURLUPART_HOST);
  for (char& c : address.host) c = ascii::ToLower(c);
  if (address.host.starts_with('[')) address.host = address.host.substr(1, address.host.size() - 2);
  const std::string port = DecodedPart(handle.get(), CURLUPART_PORT);
  address.port = address.tls ? 443 : 1080;
  if (!port.empty()) std::from_chars(port.data(), port.data() + port.size(), address.port);
  const SecretString user = DecodedPart(handle.get(), CURLUPART_USER);
  const SecretString password = DecodedPart(handle.get(), CURLUPART_PASSWORD);
  if (!user.empty() || !password.empty()) {
    address.login.append(user).append(":").append(password);
  }
  return address;
}

Status CheckProxy(const Proxy& proxy) {
  if (!proxy.url.empty()) TRY(ParseProxy(proxy));
  return Ok();
}

bool TakesNone(const Proxy& proxy) {
  if (proxy.url.empty()) return true;
  const std::vector<std::string> entries = Entries(proxy.except);
  return std::find(entries.begin(), entries.end(), "*") != entries.end();
}

bool TakesProxy(const Proxy& proxy, const std::string& host) {
  if (TakesNone(proxy) || KindOf(host) == AddressKind::kLoopback) return false;
  std::optional<Address> address = ParseAddress(host);
  const std::vector<std::string> entries = Entries(proxy.except);
  return std::none_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    return address ? Contains(entry, *address) : Names(entry, host);
  });
}

}  // namespace net
