// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace codec {

// SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// The same, of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view bytes);
  // Returns 64 lower-case hexadecimal digits of everything since the last Hex; begins anew.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace codec
