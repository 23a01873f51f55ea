// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/host_variables.h"

#include "base/sys.h"

namespace openshell {

Variables HostVariables() {
  Variables variables = {{"NO_COLOR", "1"},
                         {"LANG", "C.UTF-8"},
                         {"OPENSHELL_TELEMETRY_ENABLED", "false"},
                         {"OPENSHELL_NO_BROWSER", "1"}};
  for (const char* name :
       {"HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
        "REGISTRY_AUTH_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
        "OPENSHELL_COMMUNITY_REGISTRY", "_CONTAINERS_USERNS_CONFIGURED", kRootlessVariable,
        "_CONTAINERS_ROOTLESS_GID"}) {
    std::optional<std::string> value = sys::Environment(name);
    if (value) variables.emplace_back(name, *value);
  }
  return variables;
}

Variables VariablesIn(const std::string& state) {
  Variables variables = HostVariables();
  variables.emplace_back("XDG_CONFIG_HOME", state + "/config");
  variables.emplace_back("XDG_STATE_HOME", state + "/state");
  variables.emplace_back("XDG_DATA_HOME", state + "/data");
  return variables;
}

}  // namespace openshell
