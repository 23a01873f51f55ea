// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace report {

// The run's use of models as the gateway saw it, and the outcome of its budgets.
struct ModelUse {
  std::string model;     // The model of the first answer that named one.
  int64_t requests = 0;  // The requests that were answered.
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cache_read_tokens = 0;
  int64_t cache_write_tokens = 0;
  std::optional<double> cost_usd;  // nullopt if a price is not known, or nothing was asked.
  double priced_cost_usd = 0;      // The cost of the models with a price.
  std::vector<std::string> unpriced_models;
  bool estimated = false;  // True if some answer did not say what it used.
  std::string exhausted;   // "tokens", "cost", "requests": the budget that refused; or empty.
  // The host of a model that refused the credential (401, 403), when no model ever answered
  // otherwise than that; else empty.
  std::string refused_by;
  // The end of the last answer: its HTTP status, and whether it broke off.
  int64_t last_status = 0;
  bool broke_off = false;
  std::vector<std::string> warnings;  // In order, one line each.
  // What narrowed the run, and when, on one line; empty if nothing did.
  std::string narrowed;
};

// Reads the report's events.ocsf.jsonl. Fails only if the file cannot be read.
Result<ModelUse> ReadModelUse(const std::string& directory);

}  // namespace report
