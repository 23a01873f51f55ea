// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/data/yaml.h"

namespace eval {

// Returns a YAML tree as values: plain scalars become null, booleans and numbers as YAML 1.2's core
// schema reads them; quoted ones are text. Fails with the place of a number that is out of range.
Result<codec::Json> JsonOf(const std::string& file, const codec::YamlNode& node);

// Fails with the place of a key or text in the tree that has a NUL in it: a program or git, which
// take it, would end it there.
Status RefuseNul(const std::string& file, const codec::YamlNode& node);

}  // namespace eval
