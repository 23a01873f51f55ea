// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"

namespace sandbox {

// The agent's system-call filter as a program for the kernel: everything is allowed except what
// OpenShell's child filter denies (EPERM), what else attacks the kernel from a container, and
// `clone3`, which answers ENOSYS so that programs fall back to `clone`, whose flags can be read.
Result<std::vector<sock_filter>> BuildFilter();

// Installs it for the calling process and all it starts. Needs no_new_privs.
Status ApplyFilter(const std::vector<sock_filter>& filter);

}  // namespace sandbox
