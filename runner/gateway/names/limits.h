// SPDX-License-Identifier: Apache-2.0
// Bounds on name resolution.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Per address; a host has several, so that all of them together stay within a client's patience.
constexpr milliseconds kConnectTimeout = seconds(10);
constexpr size_t kAddressesMax = 16;
constexpr milliseconds kResolveTimeout = seconds(15);
constexpr size_t kHostsFileBytesMax = size_t{1} << 20;

// The sandbox's name service; OpenShell's bounds. Names keep their addresses while they are used.
constexpr size_t kSyntheticNamesMax = 1024;
constexpr uint32_t kNameTtlSeconds = 30;
constexpr size_t kNameQueriesAtOnceMax = 64;
constexpr uint16_t kDnsPort = 53;

}  // namespace gateway
