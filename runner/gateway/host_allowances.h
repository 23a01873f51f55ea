// SPDX-License-Identifier: Apache-2.0
// Bounds how much data a run may exchange with each host (--host-bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "codec/text/quantity.h"
#include "gateway/async/byte_allowance.h"
#include "record/event.h"

namespace gateway {

// One ByteAllowance for each host that was dialled, kept for the whole run: a new connection does
// not bring a new one.
class HostAllowances {
 public:
  // `record` is given a finding of type "budget.host-bytes" for each host that has used up its
  // `bytes`; it must outlive this.
  HostAllowances(int64_t bytes, std::function<void(const record::Notice&)> record)
      : bytes_(bytes), record_(std::move(record)) {}

  // Returns the allowance of a host, which is named in lower case as authorities have it; valid as
  // long as this object.
  ByteAllowance* Of(const std::string& host) {
    auto known = hosts_.find(host);
    if (known != hosts_.end()) return &known->second;
    std::string why = "the run's limit of " + codec::RenderSize(bytes_) + " to and from " + host +
                      " is used up (--host-bytes)";
    auto refused = [this, why] { record_(record::Notice::Blocked("budget.host-bytes", why)); };
    return &hosts_.try_emplace(host, bytes_, why, refused).first->second;
  }

 private:
  int64_t bytes_;
  std::function<void(const record::Notice&)> record_;
  std::map<std::string, ByteAllowance> hosts_;
};

}  // namespace gateway
