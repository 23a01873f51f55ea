// SPDX-License-Identifier: Apache-2.0
// Directories that are the sandbox's own, made for each run: a policy may name them, as OpenShell's
// do, and never gets the host's.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace policy {

inline constexpr std::array<std::string_view, 7> kOwnPlaces = {
    "/proc", "/dev", "/tmp", "/sandbox", "/sys", "/run", "/var/run"};

// Cleans an absolute path without "..": "/a//b/./" becomes "/a/b", and "/." becomes "/".
std::string CleanPath(std::string_view path);

// Returns why the sandbox does not have the host's `path`, an absolute, clean one that is or lies
// in one of them; empty for what every sandbox has there, and for a path that lies elsewhere.
std::string OwnPlaceFault(std::string_view path);

}  // namespace policy
