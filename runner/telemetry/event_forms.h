// SPDX-License-Identifier: Apache-2.0
// The forms in which a record (a line of OCSF) is given to other systems. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/event_target.h"

namespace telemetry {

// Every receiver of syslog should take this much (RFC 5425, 4.3.1).
inline constexpr size_t kSyslogBytesMax = 8192;

// Renders a message of syslog (RFC 5424) with its length in front (RFC 6587, 3.4.1; RFC 5425, 4.3).
// Its text is the record; of one that is too long, what is not OCSF's (`unmapped`) is left out.
// Returns nullopt for a line that is not a record, or is too long even so. `host` is this machine's
// name.
std::optional<std::string> RenderSyslog(std::string_view line, std::string_view host);

// Returns the record as a part of the body of a request to `kind`: a line, or two for Elastic.
// `run` says where it is from, for Splunk: the address of the job. Nullopt for a line that is not a
// record.
std::optional<std::string> RenderBatchPart(EventTarget::Kind kind, std::string_view line,
                                           std::string_view run);

// Returns a time in milliseconds since 1970 as "2026-11-30T12:00:00.000Z".
std::string Timestamp(int64_t time_ms);

// Returns how many items of a request the answer of Elastic's Bulk API says failed, with the first
// reason; the body is that of a 200.
struct BulkFailure {
  int64_t count = 0;
  std::string reason;
};
BulkFailure ParseBulkAnswer(std::string_view body);

}  // namespace telemetry
