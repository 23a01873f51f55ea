// SPDX-License-Identifier: Apache-2.0
// ClientHello: what was said of the first bytes stays true when more arrive.
#include <cstddef>
#include <cstdint>

#include "codec/wire/client_hello.h"

namespace {

enum class Verdict { kMore, kComplete, kMalformed };

Verdict Judge(std::string_view bytes, codec::ClientHello* hello) {
  Result<std::optional<codec::ClientHello>> parsed = codec::ParseClientHello(bytes);
  if (!parsed.ok()) return Verdict::kMalformed;
  if (!parsed.value().has_value()) return Verdict::kMore;
  *hello = *parsed.value();
  return Verdict::kComplete;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t split = bytes.size() * data[0] / 256;
  codec::ClientHello first;
  codec::ClientHello whole;
  const Verdict before = Judge(bytes.substr(0, split), &first);
  const Verdict after = Judge(bytes, &whole);
  ENSURE(before == Verdict::kMore || before == after);
  if (before == Verdict::kComplete) {
    ENSURE(first.server_name == whole.server_name && first.protocols == whole.protocols);
  }
  ENSURE(whole.server_name.size() <= 253);
  ENSURE(whole.server_name.find('\0') == std::string::npos);
  return 0;
}
