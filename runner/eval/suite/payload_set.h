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
};

// Reads it from beneath `directory`; no symbolic link is followed. At most 1 MiB.
Result<PayloadSet> LoadPayloadSet(const std::string& directory, const std::string& path);

// Returns the sets that are built in (policies/payloads/), by id; NOTICE has their licences.
std::vector<PayloadSet> BuiltInPayloadSets();

}  // namespace eval
