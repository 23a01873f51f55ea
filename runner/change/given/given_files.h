// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>
#include <string>

#include "change/capture.h"
#include "change/repository.h"

namespace change {

// The longest time that one look at a checkout takes.
constexpr std::chrono::milliseconds kLookMax{250};

// Looks at what the directory `checkout` has, and had at `since` (sys::FileTime): a file with a
// later time (ctime) is listed without its content. Only files that `repository`, which may be
// null, does not have as they are in its index are read. Nothing is written, and no link is
// followed. What `longest` is too short for is missing, and the list is not whole then; so is all
// that cannot be listed.
GivenFiles LookAtCheckout(const std::string& checkout, const Repository* repository,
                          const timespec& since, std::chrono::milliseconds longest = kLookMax);

}  // namespace change
