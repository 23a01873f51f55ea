// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.h"
#include "net/proxy.h"
#include "telemetry/event_target.h"
#include "telemetry/run_material.h"

namespace telemetry {

// What became of a run's records at one target.
struct Delivery {
  int64_t sent = 0;
  int64_t unsent = 0;
  std::string why;  // Of the first that was not sent; empty if all were.
};

// How services are reached that need it.
struct Reach {
  std::string ca_file;  // PEM; empty for the system's.
  net::Proxy proxy;     // For HTTPS.
};

// Sends all records of the run and its checks to `target` until `deadline`, the run's own with
// their places in its chain, if it has one. After a failure,
// nothing more is sent there. A file is appended to in whole lines, under a lock, and made if it is
// not there; no link may lead to it, since the agent could have left one.
Delivery DeliverEvents(const FinishedRun& run, const EventTarget& target, const Reach& reach,
                       Deadline deadline);

}  // namespace telemetry
