// SPDX-License-Identifier: Apache-2.0
// Bounds on what is read and fetched for credentials.
#pragma once

#include <chrono>
#include <cstddef>

namespace gateway {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Credentials in bodies, as OpenShell: what is rewritten, and what is read for a signature of AWS.
constexpr size_t kCredentialBodyBytesMax = size_t{256} << 10;
constexpr size_t kSignedBodyBytesMax = size_t{10} << 20;

// Access tokens that the gateway fetches itself: one answer of a token service, how long all of it
// may take, and how long before its end a token is fetched anew (clocks differ, requests take
// time).
constexpr size_t kTokenAnswerBytesMax = size_t{64} << 10;
constexpr milliseconds kTokenTimeout = seconds(30);
constexpr seconds kTokenEarly{300};
// A token is not used within this time before its end.
constexpr seconds kTokenLatest{30};
// The longest lifetime of a token that a service is believed.
constexpr seconds kTokenLifetimeMax{24 * 3600};
// The body of a request that is kept, in case its token is refused.
constexpr size_t kRepeatedBodyBytesMax = size_t{1} << 20;
constexpr seconds kTokenLifetime{3600};  // The lifetime that is asked for; Google grants no more.

}  // namespace gateway
