// SPDX-License-Identifier: Apache-2.0
// Values of JSON as midojo's Python has them: their text, and when two are equal.
#pragma once

#include <string>

#include "codec/data/json.h"

namespace eval {

// Returns the text that midojo looks into, Python's str(): text as it is, a list as Python shows it
// with texts in it quoted, and a mapping as midojo's class of it: "owner='Ann' frozen=False",
// within others "Record(owner='Ann', frozen=False)"; one that holds mappings alone, with braces. Of
// characters that Python shows as escapes, control characters and the usual invisible ones are.
std::string PythonText(const codec::Json& value);

// Returns whether Python's == holds: 1, 1.0 and true are equal, and the order of a mapping's keys
// does not count.
bool PythonEqual(const codec::Json& a, const codec::Json& b);

}  // namespace eval
