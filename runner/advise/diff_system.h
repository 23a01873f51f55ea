// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "advise/diff.h"

namespace policy {

// The part of a comparison that is not about hosts: file system, landlock, process, middlewares.
void CompareSystems(const Policy& now, const Policy& next, PolicyDifference* difference);

}  // namespace policy
