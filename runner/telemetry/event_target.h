// SPDX-License-Identifier: Apache-2.0
// `--events-to`: where the records of a run are sent once it has ended. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace telemetry {

struct EventTarget {
  enum class Kind {
    kFile,    // file:PATH
    kSyslog,  // syslog+tcp://HOST[:PORT], syslog+tls://HOST[:PORT]
    kLines,   // https://...: JSON lines
    kSplunk,  // splunk+https://HOST[:PORT][/PATH]: objects of the HTTP Event Collector
    kBulk,    // elastic+https://HOST[:PORT]/STREAM[/_bulk]: Elastic's and OpenSearch's Bulk API
  };
  Kind kind = Kind::kFile;
  std::string path;  // kFile.
  std::string host;  // kSyslog.
  uint16_t port = 0;
  bool tls = false;
  std::string url;       // The other three.
  std::string variable;  // That has the credential of these; empty for none.
  Secret credential;     // What was in it. Not for ParseEventTarget() to fill in.

  // Returns the target as it may be shown: without a query.
  std::string Shown() const;
};

// Parses "[VARIABLE@]TARGET". Plain HTTP is for this machine alone. Fails with kUsage and what is
// wrong; the error does not repeat a query, which can be a credential.
Result<EventTarget> ParseEventTarget(std::string_view text);

// Parses a list of them, separated by blanks or line ends.
Result<std::vector<EventTarget>> ParseEventTargets(std::string_view text);

}  // namespace telemetry
