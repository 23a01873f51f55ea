// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace codec {

// A Java key store (JKS, version 2, password "changeit") of trusted certificates: Java does not
// read PEM.
class JavaKeyStore {
 public:
  // Adds every certificate in `pem`, and ignores the rest of the text.
  void Add(std::string_view pem);
  // Renders the file.
  std::string Render() const;

 private:
  uint64_t count_ = 0;
  std::string entries_;
};

}  // namespace codec
