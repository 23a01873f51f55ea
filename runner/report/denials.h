// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/limits.h"
#include "report/record.h"

namespace report {

struct DenialList {
  std::vector<DeniedRequest>
      denials;  // In the order of their first line, merged, allow_line filled in.
  std::vector<FailedConnection> failures;  // Likewise; at most 200 different ones.
  int64_t dropped = 0;  // Lines skipped because they were malformed, or beyond the bound.
  std::vector<AllowedRequest> allowed;  // In the order of their first line, merged.
  int64_t allowed_dropped = 0;          // Lines of allowed requests beyond the bound.
};

// Collects the requests, denied and allowed, and the connections that failed from
// `directory`/events.ocsf.jsonl. At most 1000 different ones of each. A request's path was the
// agent's choice, so every field is taken as hostile and bounded. No such file is an empty list; at
// most `bytes_max` are read, from the byte `from` on, which begins a line; beyond, one line counts
// as dropped.
Result<DenialList> ReadDenials(const std::string& directory, int64_t from = 0,
                               size_t bytes_max = record::kRecordBytesMax);
// Does the same for a file of such lines.
Result<DenialList> ReadDenialsIn(const std::string& file, int64_t from = 0,
                                 size_t bytes_max = record::kRecordBytesMax);

// Returns the present size of that file in bytes, to pass to ReadDenials() as `from` later; 0 if it
// does not exist.
int64_t EventBytes(const std::string& directory);

}  // namespace report
