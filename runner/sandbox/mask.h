// SPDX-License-Identifier: Apache-2.0
// Places with credentials on a host, which stay hidden even if a policy exposes the directory
// around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/host.h"

namespace sandbox {

// Returns whether `path` is `top` or something in it. Both are absolute and normal.
bool Beneath(const std::string& path, const std::string& top);
bool IsBeneathAny(const std::string& path, const std::vector<std::string>& tops);

// True for a directory that holds people's homes: /root, /home, and what mounts beside them.
bool IsHome(std::string_view top_level);

// True for a path in one of the sandbox's own places (policy::kOwnPlaces).
bool IsPrivate(const std::string& path);

// Returns whether `path` is, or lies in, a place of credentials, existing or not: of the system, of
// the home that it is in, or of `also`.
bool IsSecret(const std::string& path, const HostView& host, const std::vector<std::string>& also);

// Returns the paths where programs installed in the directory `top` would keep credentials.
std::vector<std::string> InstallationSecrets(const std::string& top);

// Returns every existing secret beneath the paths in `shown`, by the path without links, in a fixed
// order: system credentials, the well-known files of every home that may be shown and of the
// runner's own, and `also` (the CI's own token files). Bounded by the number of homes on the host.
std::vector<std::string> SecretPaths(const std::vector<std::string>& shown, const HostView& host,
                                     const std::vector<std::string>& also);

}  // namespace sandbox
