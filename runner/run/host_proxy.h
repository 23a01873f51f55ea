// SPDX-License-Identifier: Apache-2.0
// The proxy of the machine, for the runner's own requests.
#pragma once

#include "base/sys.h"
#include "net/proxy.h"

namespace run {

// Returns the proxy of HTTPS_PROXY and NO_PROXY. Of each, the lower-case spelling counts where the
// other is unset or empty: programs differ in which they read, so machines set either or both.
inline net::Proxy HostProxy() {
  const auto first_set = [](const char* name, const char* lower_case_name) {
    std::string value = sys::Environment(name).value_or("");
    return value.empty() ? sys::Environment(lower_case_name).value_or("") : value;
  };
  return {first_set("HTTPS_PROXY", "https_proxy"), first_set("NO_PROXY", "no_proxy")};
}

}  // namespace run
