// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "advise/diff.h"

namespace advise {

// Does the part of a comparison that is not about hosts: file system, landlock, process,
// middlewares.
void CompareSystems(const policy::Policy& now, const policy::Policy& next,
                    PolicyDifference* difference);

}  // namespace advise
