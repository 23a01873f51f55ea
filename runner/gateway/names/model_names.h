// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace gateway {

// Watches the look-ups of the names of a run's models: without an address for them no further
// request can help.
class ModelNames {
 public:
  // `hosts` are names or patterns, in lower case. `tell` is called once, with why: "resolving
  // api.example.com: no address".
  ModelNames(std::vector<std::string> hosts, std::function<void(const std::string& why)> tell)
      : hosts_(std::move(hosts)), tell_(std::move(tell)) {}

  // Takes what came of a look-up; `failure` is null if there is an address. A name without one
  // (kNotFound) counts at once, a look-up that failed otherwise the third time in a row.
  void Take(const std::string& host, const Error* failure);

 private:
  std::vector<std::string> hosts_;
  std::function<void(const std::string& why)> tell_;
  std::map<std::string, int> failures_;  // In a row, by host: those of `hosts_` alone.
  bool told_ = false;
};

}  // namespace gateway
