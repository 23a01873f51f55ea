// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sigstore {

// Why a signature does not count; one code for one cause, so that a test can tell a refusal for the
// right reason from one by luck. The words of `Render` are part of the output's contract.
enum class Reason {
  kParse,  // "parse": not the JSON it should be.
};

std::string_view Render(Reason reason);

struct Rejection {
  Reason reason = Reason::kParse;
  std::string detail;  // Lower case, no full stop.
  // For an identity that does not match: what the certificate says, to be shown and to be
  // copied into the configuration. Else empty.
  std::string identity = {};
  std::string issuer = {};
};

}  // namespace sigstore
