// SPDX-License-Identifier: Apache-2.0
// Policy files: any bytes are a policy or an error that says where and what.
#include <cstddef>
#include <cstdint>

#include "policy/load/parse.h"

namespace {

void CheckPolicy(const policy::Policy& policy) {
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      ENSURE(!endpoint.ports.empty());
      ENSURE(!endpoint.host.empty() || !endpoint.allowed_ips.empty());
      ENSURE(endpoint.body_bytes_max > 0);
      for (uint16_t port : endpoint.ports) ENSURE(port != 0);
    }
  }
  for (const policy::Middleware& middleware : policy.middlewares) {
    ENSURE(!middleware.include.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  policy::ParseContext context;
  context.file = "policy.yml";
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(text, context);
  if (parsed.ok()) {
    CheckPolicy(parsed.value().policy);
    return 0;
  }
  const std::string& what = parsed.error().what;
  ENSURE(parsed.error().code == Code::kInvalid);
  ENSURE(what.starts_with("policy.yml") && what.find("error: ") != std::string::npos);
  return 0;
}
