// SPDX-License-Identifier: Apache-2.0
// The little of DER that is read without the library, since to it every certificate is one whose
// key must be made ready, which takes as long as a signature.
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

// The element at the front of `bytes`, which is left without it. Nothing for what is none, for a
// length that is not there or not written in the shortest way, and for tags of several bytes.
std::optional<Element> TakeElement(std::string_view* bytes);

// An element of that first byte around `content`.
std::string Wrap(int tag, std::string_view content);

}  // namespace sigstore
