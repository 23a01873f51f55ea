// SPDX-License-Identifier: Apache-2.0
// Targets: a canonical path stays as it is, and nothing climbs out of it.
#include <cstddef>
#include <cstdint>

#include "codec/wire/http_target.h"

namespace {

void CheckPath(std::string_view path, bool allow_encoded_slash) {
  Result<std::string> canonical = codec::CanonicalPath(path, allow_encoded_slash);
  if (!canonical.ok()) return;
  const std::string& text = canonical.value();
  ENSURE(text.starts_with('/'));
  for (const char* never : {"//", "/../", "/./", ";", "#", "?", " ", "%00", "%0A", "%2e", "%2E"}) {
    ENSURE(text.find(never) == std::string::npos);
  }
  ENSURE(!text.ends_with("/..") && !text.ends_with("/."));
  for (char c : text) ENSURE(c > 0x20 && c < 0x7f);
  if (text.size() > 4096) return;  // Encoding may lengthen what was just short enough.
  Result<std::string> again = codec::CanonicalPath(text, allow_encoded_slash);
  ENSURE(again.ok() && again.value() == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckPath(text, false);
  CheckPath(text, true);
  (void)codec::ParseQuery(text);
  Result<codec::RequestUrl> url = codec::ParseRequestUrl(text);
  Result<std::pair<std::string, uint16_t>> authority = codec::ParseAuthority(text);
  if (!authority.ok()) return 0;
  const auto& [host, port] = authority.value();
  const bool is_v6 = host.find(':') != std::string::npos;
  Result<std::pair<std::string, uint16_t>> again =
      codec::ParseAuthority((is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port));
  ENSURE(again.ok() && again.value() == authority.value());
  return 0;
}
