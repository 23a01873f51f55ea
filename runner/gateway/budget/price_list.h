// SPDX-License-Identifier: Apache-2.0
// The prices of tokens: a repository's own list, then policies/prices.yml with the prices that
// vendors publish.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "gateway/budget/usage_meter.h"

namespace gateway {

// US dollars for a million tokens.
struct Price {
  std::string model;  // BareModelName or PlainModelName, or the beginning of the former before '*'.
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
};

class PriceList {
 public:
  // Parses `text` in the form of policies/prices.yml: `prices:`, a list of {model, input, output}
  // with optional cache_read and cache_write (else as input). Fails with kInvalid and
  // "file:line:col".
  static Result<PriceList> Parse(std::string_view text, const std::string& file);
  // Reads the list itself, inside another file.
  static Result<PriceList> FromYaml(const codec::YamlNode& list, const std::string& file);
  // Returns the list that this program carries. It is read when a model is first asked for: most
  // runs ask for none.
  static PriceList BuiltIn();

  // Puts `first` before this list.
  void Prefer(PriceList first);

  // Returns the price of a model, in any of its spellings; null if it is not known. The first list
  // that has an entry decides. Within a list, the dated name takes precedence over the plain one,
  // that over a '*', and a longer prefix over a shorter one.
  const Price* Find(std::string_view model) const;

 private:
  void ReadBuiltIn() const;

  mutable std::vector<std::vector<Price>> lists_;
  mutable bool built_in_unread_ = false;  // It comes behind the others.
};

// Returns the line that a person has to add to the configuration for a model without a price.
std::string PriceLine(std::string_view model);

// Returns the cost in US dollars.
double CostOf(const Price& price, const TokenUsage& usage);

}  // namespace gateway
