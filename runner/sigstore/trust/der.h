// SPDX-License-Identifier: Apache-2.0
// A minimal DER parser. OpenSSL would prepare the key of every certificate it parses, which takes
// as long as verifying a signature.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sigstore {

// A tag, a length and that many bytes.
struct Element {
  int tag = 0;  // The whole first byte: 0x30 is a SEQUENCE, 0xa3 is [3] EXPLICIT.
  std::string_view whole;
  std::string_view content;
};

// Takes the element at the front of `bytes`. Nothing if it is malformed, if its length is missing
// or not in its shortest form, or for tags of several bytes.
std::optional<Element> TakeElement(std::string_view* bytes);

// Returns an element of that first byte around `content`.
std::string Wrap(int tag, std::string_view content);

}  // namespace sigstore
