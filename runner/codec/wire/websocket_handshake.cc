// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_handshake.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "codec/text/base64.h"

namespace codec {
namespace {

// The value of a field that must stand there exactly once; nullptr if it does not.
const std::string* Single(const HttpFields& fields, std::string_view name) {
  const std::string* found = nullptr;
  for (const HttpField& field : fields) {
    if (!EqualIgnoringCase(field.name, name)) continue;
    if (found != nullptr) return nullptr;
    found = &field.value;
  }
  return found;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    parts.push_back(part);
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// Every extension that is listed, each as its name and then its parameters. Extensions that we know
// have no quoted parameters with commas in them.
std::vector<std::vector<std::string_view>> Extensions(const HttpFields& fields) {
  std::vector<std::vector<std::string_view>> extensions;
  for (const HttpField& field : fields) {
    if (!EqualIgnoringCase(field.name, "sec-websocket-extensions")) continue;
    for (std::string_view extension : Split(field.value, ',')) {
      extensions.push_back(Split(extension, ';'));
    }
  }
  return extensions;
}

// "name=digits" with the number in what deflate has for a window.
bool IsWindow(std::string_view parameter, std::string_view name) {
  if (!parameter.starts_with(name)) return false;
  std::string_view value = parameter.substr(name.size());
  if (!value.starts_with('=')) return false;
  value.remove_prefix(1);
  constexpr std::array<std::string_view, 8> kBits = {"8", "9", "10", "11", "12", "13", "14", "15"};
  return std::find(kBits.begin(), kBits.end(), value) != kBits.end();
}

// Returns whether a server may answer `extension` to kWebSocketDeflateOffer (RFC 7692, 7.1).
bool KeepsNoContext(const std::vector<std::string_view>& extension) {
  int client = 0;
  int server = 0;
  int window = 0;
  for (size_t i = 1; i < extension.size(); ++i) {
    if (extension[i] == "client_no_context_takeover") {
      ++client;
    } else if (extension[i] == "server_no_context_takeover") {
      ++server;
    } else if (IsWindow(extension[i], "server_max_window_bits")) {
      ++window;
    } else {
      return false;
    }
  }
  return client <= 1 && server == 1 && window <= 1;
}

}  // namespace

Status CheckWebSocketRequest(const RequestHead& head) {
  if (head.method != "GET" || head.minor_version != 1) return Invalid("not GET over HTTP/1.1");
  const std::string* upgrade = Single(head.fields, "upgrade");
  if (!FieldHasToken(head.fields, "connection", "upgrade") || upgrade == nullptr ||
      !EqualIgnoringCase(*upgrade, "websocket")) {
    return Invalid("not an upgrade to WebSocket only");
  }
  const std::string* version = Single(head.fields, "sec-websocket-version");
  if (version == nullptr || *version != "13") return Invalid("not WebSocket version 13");
  const std::string* key = Single(head.fields, "sec-websocket-key");
  if (key == nullptr) return Invalid("not exactly one Sec-WebSocket-Key");
  const std::optional<std::string> bytes = DecodeBase64(*key);
  if (!bytes.has_value() || bytes->size() != 16)
    return Invalid("a Sec-WebSocket-Key of the wrong length");
  return Ok();
}

bool OffersWebSocketDeflate(const HttpFields& fields) {
  const std::vector<std::vector<std::string_view>> extensions = Extensions(fields);
  return std::any_of(extensions.begin(), extensions.end(),
                     [](const auto& extension) { return extension[0] == "permessage-deflate"; });
}

Status CheckWebSocketResponse(const ResponseHead& head, std::string_view key) {
  if (head.status != 101) return Invalid("not 101");
  const std::string* upgrade = Single(head.fields, "upgrade");
  if (!FieldHasToken(head.fields, "connection", "upgrade") || upgrade == nullptr ||
      !EqualIgnoringCase(*upgrade, "websocket")) {
    return Invalid("a 101 response that does not switch to WebSocket");
  }
  const std::string* accept = Single(head.fields, "sec-websocket-accept");
  if (accept == nullptr || *accept != WebSocketAccept(key)) {
    return Invalid("a wrong Sec-WebSocket-Accept");
  }
  return Ok();
}

Result<bool> AgreesToWebSocketDeflate(const HttpFields& fields, bool deflate_offered) {
  const std::vector<std::vector<std::string_view>> extensions = Extensions(fields);
  if (extensions.empty()) return false;
  if (extensions.size() > 1 || !deflate_offered || extensions[0][0] != "permessage-deflate" ||
      !KeepsNoContext(extensions[0])) {
    return Invalid("a WebSocket extension that was not offered");
  }
  return true;
}

std::string WebSocketAccept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return EncodeBase64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace codec
