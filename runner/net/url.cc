// SPDX-License-Identifier: Apache-2.0
#include "net/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>

#include <charconv>
#include <memory>

#include "base/ascii.h"

namespace net {
namespace {

using Handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// What stands before an "@" may be a user's name and password, however the rest is malformed.
Error NotAnAddress(std::string_view text) {
  const size_t at = text.rfind('@');
  return Error{
      Code::kInvalid,
      "not an http or https URL: " +
          (at == std::string_view::npos ? ShownUrl(text) : "***" + ShownUrl(text.substr(at)))};
}

std::string Part(CURLU* handle, CURLUPart part) {
  char* text = nullptr;
  const unsigned flags = part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0;
  if (curl_url_get(handle, part, &text, flags) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

Result<Url> Parse(CURLU* handle, const std::string& text) {
  if (text.find_first_of(std::string_view("\r\n\t \0", 5)) != std::string::npos ||
      curl_url_set(handle, CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK) {
    return NotAnAddress(text);
  }
  Url url{Part(handle, CURLUPART_SCHEME), Part(handle, CURLUPART_HOST), 0,
          Part(handle, CURLUPART_URL)};
  if (url.scheme != "https" && url.scheme != "http") return NotAnAddress(text);
  for (char& c : url.host) c = ascii::ToLower(c);
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  const std::string port = Part(handle, CURLUPART_PORT);
  std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (url.host.empty() || url.port == 0) return NotAnAddress(text);
  return url;
}

AddressKind KindOfV4(uint32_t address) {
  const auto within = [address](uint32_t network, int bits) {
    return (address >> (32 - bits)) == (network >> (32 - bits));
  };
  if (within(0x7f000000, 8)) return AddressKind::kLoopback;
  if (within(0xa9fe0000, 16)) return AddressKind::kLinkLocal;
  if (within(0x0a000000, 8) || within(0xac100000, 12) || within(0xc0a80000, 16) ||
      within(0x64400000, 10)) {
    return AddressKind::kPrivate;
  }
  if (within(0, 8) || within(0xe0000000, 3)) return AddressKind::kUnusable;
  return AddressKind::kPublic;
}

}  // namespace

Result<Url> ParseUrl(const std::string& text) {
  Handle handle(curl_url(), &curl_url_cleanup);
  ENSURE(handle != nullptr);
  return Parse(handle.get(), text);
}

Result<Url> ResolveUrl(const Url& base, const std::string& reference) {
  Handle handle(curl_url(), &curl_url_cleanup);
  ENSURE(handle != nullptr);
  TRY(Parse(handle.get(), base.text));
  return Parse(handle.get(), reference);  // Set on a handle that has one, it is relative to that.
}

std::string ShownUrl(std::string_view url) {
  std::string shown(url.substr(0, std::min(url.find('?'), size_t{300})));
  for (char& c : shown) {
    if (ascii::IsControl(c)) c = ' ';
  }
  return shown;
}

AddressKind KindOf(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost")) return AddressKind::kLoopback;
  in_addr v4{};
  if (::inet_aton(host.c_str(), &v4) != 0) return KindOfV4(ntohl(v4.s_addr));
  in6_addr v6{};
  const std::string without_zone = host.substr(0, host.find('%'));
  if (::inet_pton(AF_INET6, without_zone.c_str(), &v6) != 1) return AddressKind::kName;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    uint32_t inner = 0;
    ::memcpy(&inner, v6.s6_addr + 12, sizeof inner);
    return KindOfV4(ntohl(inner));
  }
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return AddressKind::kLoopback;
  if (IN6_IS_ADDR_LINKLOCAL(&v6)) return AddressKind::kLinkLocal;
  if (IN6_IS_ADDR_UNSPECIFIED(&v6) || IN6_IS_ADDR_MULTICAST(&v6)) return AddressKind::kUnusable;
  return (v6.s6_addr[0] & 0xfe) == 0xfc ? AddressKind::kPrivate : AddressKind::kPublic;
}

}  // namespace net
