// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace telemetry {

// The ids of one run's trace: spans and the logs about them are made apart and agree on these.
class TraceIds {
 public:
  enum class Of : uint64_t { kRun, kPhase, kAgent, kTurn, kTool, kEvent, kProgram, kCheck };

  // `trace_id` has 16 bytes; `seed` is random.
  TraceIds(std::string trace_id, uint64_t seed) : trace_id_(std::move(trace_id)), seed_(seed) {}

  const std::string& trace_id() const { return trace_id_; }
  // Returns the 8 bytes of the span of the `index`-th thing of its kind; never all zero.
  std::string SpanId(Of of, size_t index = 0) const {
    // SplitMix64, whose steps are one-to-one: no two spans of a run have one id.
    uint64_t mixed = seed_ + 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(of) << 40 | (index + 1));
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    if (mixed == 0) mixed = 1;
    std::string id;
    for (int shift = 56; shift >= 0; shift -= 8) id += static_cast<char>(mixed >> shift);
    return id;
  }

 private:
  std::string trace_id_;
  uint64_t seed_;
};

}  // namespace telemetry
