// SPDX-License-Identifier: Apache-2.0
// Compares patterns: one covers another if it matches everything that the other matches.
#pragma once

#include <string_view>

#include "policy/model/policy.h"

namespace advise {

// The answer to whether the wide pattern matches all that the narrow one does. kYes and kNo are
// proven; patterns with classes, `?` or escapes may be kUnknown.
enum class Cover { kNo, kUnknown, kYes };

// Combine two covers: Both holds if both do, Either if one does.
Cover Both(Cover first, Cover second);
Cover Either(Cover first, Cover second);

// Compares globs of codec/glob/glob.h with this delimiter.
Cover GlobCovers(std::string_view wide, std::string_view narrow, char delimiter);
// Compares hosts of endpoints; empty is every host.
Cover HostCovers(std::string_view wide, std::string_view narrow);
// Binaries: patterns if and only if they contain '*'.
Cover BinaryCovers(std::string_view wide, std::string_view narrow);
// Compares path selectors of endpoints; empty is every path.
Cover SelectorCovers(std::string_view wide, std::string_view narrow);
// Compares allow rules of two endpoints with this protocol.
Cover RuleCovers(policy::Protocol protocol, const policy::HttpRule& wide,
                 const policy::HttpRule& narrow);

}  // namespace advise
