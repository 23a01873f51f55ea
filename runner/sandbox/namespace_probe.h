// SPDX-License-Identifier: Apache-2.0
// Probes step by step which parts of tier `namespaces` this host allows, if a whole sandbox could
// not be started.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sandbox {

struct NamespaceStep {
  std::string name;
  int failure = 0;  // errno; 0 if it worked.
};

// Tries namespaces in the order in which a sandbox needs them. The first that fails is the last:
// the rest builds on it. Everything tried is gone when this returns. With `user`, which takes root,
// it tries as that user.
Result<std::vector<NamespaceStep>> ProbeNamespaces(std::optional<uid_t> user = std::nullopt);

// Returns, for root without the rights that tier `namespaces` takes of it, as in a container, what
// to type to be an ordinary user who is given namespaces, here or in another container; or "".
std::string RootRemedy();

}  // namespace sandbox
