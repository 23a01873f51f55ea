// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gateway {

// A server that is known to be a model's.
struct ModelServer {
  std::string host;   // In lower case; a pattern iff it contains '*'.
  uint16_t port = 0;  // 0 for every port.
  std::string path;   // A selector of its paths; empty for every path.
};

// Zero: no limit.
struct BudgetLimits {
  int64_t tokens = 0;  // Input, output, cache reads and writes together.
  double cost_usd = 0;
  int64_t requests = 0;  // To models.
  int64_t requests_per_minute = 0;
  std::vector<std::string> models;  // The only ones that may be asked; empty for any.
  // Not a limit, but texts whose first occurrence in what models are sent is recorded.
  std::vector<std::string> watched_texts = {};
  // Returns the servers that are known to be models'. A request to these that could use a model,
  // and is not one that is counted, is refused. It is called once, when the first such request
  // comes: most runs send none. Null for none.
  std::function<std::vector<ModelServer>()> model_servers = nullptr;

  bool any() const { return bounds_use() || requests_per_minute > 0 || !models.empty(); }
  bool bounds_use() const { return tokens > 0 || cost_usd > 0 || requests > 0; }
  bool reads_bodies() const { return cost_usd > 0 || !models.empty(); }
  bool counts_tokens() const { return tokens > 0 || cost_usd > 0; }
};

}  // namespace gateway
