// SPDX-License-Identifier: Apache-2.0
// The proxy of the machine: for the runner's own requests, and for the agent's connections.
#pragma once

#include <optional>
#include <string>

#include "base/sys.h"
#include "gateway/egress_proxy.h"
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

// Returns the proxy for the agent's connections, read from the same variables; nullopt if every
// host is reached directly. Fails as EgressProxy::Read does, and with kInvalid if
// AGENTIC_CI_PROXY_BY_NAME is set to anything but `true` and `false`.
inline Result<std::optional<gateway::EgressProxy>> HostEgressProxy() {
  const std::string by_name = sys::Environment("AGENTIC_CI_PROXY_BY_NAME").value_or("");
  if (!by_name.empty() && by_name != "true" && by_name != "false") {
    return Error{Code::kInvalid, "AGENTIC_CI_PROXY_BY_NAME is neither true nor false",
                 "AGENTIC_CI_PROXY_BY_NAME=true"};
  }
  net::Proxy proxy = HostProxy();
  if (net::TakesNone(proxy)) return std::optional<gateway::EgressProxy>();
  return std::optional(TRY(gateway::EgressProxy::Read(std::move(proxy), by_name == "true")));
}

}  // namespace run
