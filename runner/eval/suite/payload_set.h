// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace eval {

// A file of payloads: {"id", "payloads": [TEXT], ...} as midojo has it, or one of garak's, which
// `garak_payload_name` tells. Further members are for people (origin, licence, references).
struct PayloadSet {
  std::string id;
  std::vector<std::string> payloads;
  std::vector<std::string> categories = {};  // OWASP's of risks for agents: "ASI-01"; may be empty.
  std::string license = {};                  // An SPDX identifier; may be empty.
  std::string origin = {};  // "garak d86ca21b... garak/data/payloads/x.json"; may be empty.
  std::string file = {};    // Where it was read from; empty if it is built in.
};

// Reads it from beneath `directory`; no symbolic link is followed. At most 1 MiB.
Result<PayloadSet> LoadPayloadSet(const std::string& directory, const std::string& path);

// Returns the sets that suites can name by id: those that are built in (policies/payloads/; NOTICE
// has their licences), then those in the files *.json of `directory`, unless that is empty, in the
// order of their names. Fails with kInvalid for a file that is not a set, or whose id is taken;
// with kNotFound or kIo if it cannot be read.
Result<std::vector<PayloadSet>> FindPayloadSets(const std::string& directory);

// Returns a line for each: id, number of payloads, categories, licence, origin or file.
std::string RenderPayloadSets(const std::vector<PayloadSet>& sets);

}  // namespace eval
