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
};

// Reads it from beneath `directory`; no symbolic link is followed. At most 1 MiB.
Result<PayloadSet> LoadPayloadSet(const std::string& directory, const std::string& path);

}  // namespace eval
