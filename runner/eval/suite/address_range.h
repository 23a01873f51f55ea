// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace eval {

// Addresses with a prefix in common, as checks name them: "10.0.0.0/8", "2001:db8::/32".
class AddressRange {
 public:
  // Returns nullopt if `text` is not of that form, or has bits behind the prefix.
  static std::optional<AddressRange> Parse(const std::string& text);

  // Returns whether `host` is an address in it; a name is in none.
  bool Contains(const std::string& host) const;

 private:
  int family_ = 0;
  uint8_t bytes_[16] = {};
  int prefix_ = 0;  // In bits.
};

}  // namespace eval
