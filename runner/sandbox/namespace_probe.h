// SPDX-License-Identifier: Apache-2.0
// Which parts of tier `namespaces` this host allows, tried step by step, if a whole sandbox could
// not be started.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sandbox {

struct NamespaceStep {
  std::string name;
  int failure = 0;  // errno; 0: it worked.
};

// In the order in which a sandbox needs them. The first that fails is the last: what follows builds
// on it. Everything tried is gone when this returns.
Result<std::vector<NamespaceStep>> ProbeNamespaces();

}  // namespace sandbox
