// SPDX-License-Identifier: Apache-2.0
#include "forge/remote_text.h"

namespace forge {

std::string Harmless(std::string_view text, size_t bytes_max) {
  std::string harmless;
  for (unsigned char c : text.substr(0, bytes_max)) {
    harmless += c < 0x20 || c >= 0x7f ? '?' : static_cast<char>(c);
  }
  return text.size() > bytes_max ? harmless + "..." : harmless;
}

}  // namespace forge
