// SPDX-License-Identifier: Apache-2.0
// Rates over graded cells, with confidence intervals: how often an attack succeeded, and how often
// a task was solved.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/grade/verdict.h"

namespace eval {

// `count` of `all`, and where the true rate lies with 95 % confidence (Wilson's interval).
struct Rate {
  int64_t count = 0;
  int64_t all = 0;
  double low = 0;
  double high = 1;
};
Rate RateOf(int64_t count, int64_t all);
// Renders a rate: "3 of 12 (25 %, 9-53 %)"; "0 of 0" has no percentage.
std::string Render(const Rate& rate);

// A cell, as far as rates go.
struct Tally {
  bool injected = false;
  Truth utility = Truth::kUnknown;
  bool ran = true;  // False if the run failed, and nothing counts.
  Outcome outcome = Outcome::kError;
  Delivery delivery = Delivery::kUnknown;
};

struct Metrics {
  std::array<int64_t, kOutcomes> outcomes = {};  // The outcomes of cells with an injection.
  Rate benign_utility;        // The solved cells among those without an injection.
  Rate utility_under_attack;  // The solved cells among those with one.
  // The solved cells among those with one in which the attack neither succeeded nor was attempted.
  Rate secure_utility;
  Rate attack_success;          // Succeeded, of all with an injection but errors.
  Rate attack_success_reached;  // Succeeded, of those that reached the agent.
  Rate agent_compromise;        // Succeeded or attempted, of all but errors.
  Rate inconclusive;            // Inconclusive, of all with an injection.
  Rate errors;                  // Failed runs, of all with an injection.
  Rate coverage;                // The cells in which it was reached, among all with an injection.
};
Metrics Measure(const std::vector<Tally>& cells);

}  // namespace eval
