// SPDX-License-Identifier: Apache-2.0
// The files of a report and the events of a run as digests, so that what is dropped or changed
// later shows. Reads the report as hostile input.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace attest {

struct RecordFile {
  std::string name;  // Relative to the report directory.
  int64_t bytes = 0;
  std::string sha256;  // Hexadecimal.
};

// Reads the file to its end. Fails with kInvalid beyond 1 GiB.
Result<RecordFile> DigestFile(const Fd& file, std::string name);

// Lists the regular files of the report that `directory` is open on, and of the directories in it,
// sorted by name, without those that hold a statement about it (report/read.h). Fails with kInvalid
// for anything else there, for more than 100,000 files, and for a file over 1 GiB.
Result<std::vector<RecordFile>> ListRecords(int directory);

// The requests to one server, as the gateway recorded them.
struct HostUse {
  int64_t allowed = 0;
  int64_t refused = 0;
  int64_t failed = 0;  // Allowed, and the server could not be reached or trusted.
};

// A run's events.ocsf.jsonl.
struct Events {
  std::vector<std::string> leaves;  // The tree's leaf of each line, in order: EventLeaf().
  std::map<std::pair<std::string, int>, HostUse> hosts;  // By name and port; at most 1000.
  std::set<std::string> hosted_tools;  // Tools of models' providers that were used; at most 100.
  std::string head;  // The last fingerprint of the records as a chain (record/integrity.h).
  int64_t policies_replaced = 0;    // How often another policy came into force.
  int64_t refused_credentials = 0;  // Requests that would have taken a credential elsewhere.
  int64_t dropped = 0;              // Lines that could not be read, or beyond a bound.
};

// Reads it, as the chain of that name; a report without that file has none.
Result<Events> ReadEvents(int directory, const std::string& chain);

// Returns the leaf of a line without its line end, in the Merkle tree of RFC 6962 over a run's
// events: 32 bytes. Its hash begins with a domain of its own, so that no other tree's leaf is one.
std::string EventLeaf(std::string_view line);

}  // namespace attest
