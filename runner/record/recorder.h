// SPDX-License-Identifier: Apache-2.0
// Writes the gateway's decisions to events.ocsf.jsonl before they take effect, and to events.log
// for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "codec/data/secret_mask.h"
#include "record/event.h"
#include "record/limits.h"
#include "record/ocsf.h"

namespace record {

// Writes every decision as JSON before it takes effect: what cannot be recorded does not happen.
// The lines for people, which say the same, follow together when the gateway next waits.
class Recorder {
 public:
  // `sandbox` is its uid (RenderSandbox). `secrets` outlives this: a program that learnt a secret
  // from a host may put it into what is recorded.
  Recorder(Fd jsonl, Fd log, std::string_view sandbox, const codec::SecretMask& secrets)
      : jsonl_(std::move(jsonl)),
        log_(std::move(log)),
        sandbox_(RenderSandbox(sandbox)),
        secrets_(secrets) {}

  // Returns false if a file could not be written, or if kRecordBytesMax is reached: the gateway
  // must end.
  [[nodiscard]] bool Record(const Event& event);
  [[nodiscard]] bool Record(const Notice& notice);
  // Writes the lines for people that are due. False as Record.
  [[nodiscard]] bool Flush();
  bool failed() const { return failed_; }

 private:
  // Writes the record in json_ and its line, which begins at `lines_before`.
  bool Write(size_t lines_before);

  Fd jsonl_;
  Fd log_;
  std::string sandbox_;  // The member of each record.
  const codec::SecretMask& secrets_;
  std::string json_;   // The record that is being written.
  std::string lines_;  // For log_.
  size_t bytes_ = 0;
  bool failed_ = false;
};

}  // namespace record
