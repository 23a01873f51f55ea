// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gateway {

// Zero: no limit.
struct BudgetLimits {
  int64_t tokens = 0;  // Input, output, cache reads and writes together.
  double cost_usd = 0;
  int64_t requests = 0;  // To models.
  int64_t requests_per_minute = 0;
  std::vector<std::string> models;  // The only ones that may be asked; empty for any.
  // Not a limit, but texts whose first occurrence in what models are sent is recorded.
  std::vector<std::string> watched_texts = {};

  bool any() const {
    return tokens > 0 || cost_usd > 0 || requests > 0 || requests_per_minute > 0 || !models.empty();
  }
  bool reads_bodies() const { return cost_usd > 0 || !models.empty(); }
};

}  // namespace gateway
